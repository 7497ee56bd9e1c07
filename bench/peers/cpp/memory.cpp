// Locks of this process alone.
#include <absl/synchronization/mutex.h>

#include <map>
#include <mutex>
#include <shared_mutex>

#include "peer.hpp"

namespace peers {

namespace {

struct OfStd {
  template <class M>
  static void take(M& mutex, bool shared) {
    if constexpr (requires { mutex.lock_shared(); }) {
      if (shared) return mutex.lock_shared();
    }
    mutex.lock();
  }
  template <class M>
  static void give(M& mutex, bool shared) {
    if constexpr (requires { mutex.lock_shared(); }) {
      if (shared) return mutex.unlock_shared();
    }
    mutex.unlock();
  }
};

struct OfAbsl {
  static void take(absl::Mutex& mutex, bool shared) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shared ? mutex.ReaderLock() : mutex.WriterLock();
  }
  static void give(absl::Mutex& mutex, bool shared) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shared ? mutex.ReaderUnlock() : mutex.WriterUnlock();
  }
};

template <class M, class How, bool kShared>
class MemoryPeer final : public Peer {
 public:
  explicit MemoryPeer(std::string version) : version_(std::move(version)) {}

  [[nodiscard]] std::string version() const override { return version_; }
  [[nodiscard]] std::string settings() const override { return "nothing to set"; }
  [[nodiscard]] int batch() const override { return 100; }
  [[nodiscard]] std::string cannot(const Work& work) const override {
    return work.shared > 0 && !kShared ? "has no shared form" : "";
  }
  std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds /*ttl*/) override {
    return std::make_unique<Own>(all_[name]);
  }

 private:
  class Own final : public Lock {
   public:
    explicit Own(M& mutex) : mutex_(mutex) {}
    std::uint64_t take(bool shared) override {
      How::take(mutex_, shared_ = shared);
      return 0;
    }
    void give() override { How::give(mutex_, shared_); }

   private:
    M& mutex_;
    bool shared_ = false;
  };

  std::string version_;
  std::map<std::string, M> all_;  // a node each: they stay where they are
};

std::string library() { return "libstdc++ " + std::to_string(_GLIBCXX_RELEASE); }

}  // namespace

std::unique_ptr<Peer> timed_mutex_peer() {
  return std::make_unique<MemoryPeer<std::timed_mutex, OfStd, false>>(library());
}
std::unique_ptr<Peer> shared_timed_mutex_peer() {
  return std::make_unique<MemoryPeer<std::shared_timed_mutex, OfStd, true>>(library());
}
std::unique_ptr<Peer> absl_peer() {
  return std::make_unique<MemoryPeer<absl::Mutex, OfAbsl, true>>(
      "Abseil " + std::to_string(ABSL_LTS_RELEASE_VERSION));
}

}  // namespace peers
