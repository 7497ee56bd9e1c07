// Interlock itself, as its users use it.
#include "interlock/interlock.hpp"

#include <latch>

#include "detached.hpp"
#include "rounds.hpp"

namespace peers {

namespace {

using interlock::Acquirer;
using interlock::Client;
using interlock::Lease;
using interlock::testing_support::Detached;

std::uint64_t fence_of(const Lease& lease) {
  return lease.traits().fences ? lease.fence().value : 0;
}

class OwnLock final : public Lock {
 public:
  OwnLock(const Client& locks, const std::string& name, std::chrono::milliseconds ttl)
      : mutex_(locks, {interlock::exclusive(name)}, {.ttl = ttl}), ttl_(ttl) {}

  std::uint64_t take(bool shared) override {
    if (!shared) {
      lease_ = mutex_.acquire();
      return fence_of(*lease_);
    }
    if (!both_) both_.emplace(mutex_.client(), mutex_.resource(), interlock::Options{.ttl = ttl_});
    lease_ = both_->read();
    return 0;
  }
  void give() override { lease_->release(); }

 private:
  Acquirer mutex_;
  std::chrono::milliseconds ttl_;
  std::optional<interlock::RwLock> both_;
  std::optional<Lease> lease_;
};

/// A worker without a thread.
Detached go_round(interlock::RwLock lock, Rounds& rounds, std::latch& done) {
  while (rounds.next()) {
    Lease lease = co_await (rounds.shared() ? lock.reader() : lock.writer()).async_acquire();
    rounds.enter(rounds.shared() ? 0 : fence_of(lease));
    rounds.leave();
    (void)co_await lease.async_release();
    rounds.done();
  }
  done.count_down();
}

std::string url_of(const Addresses& addresses) {
  if (addresses.empty()) return "memory://";
  if (addresses.size() == 1)
    return addresses[0].starts_with("/") ? "file://" + addresses[0] : addresses[0];
  std::string nodes;
  for (const auto& address : addresses)
    nodes += (nodes.empty() ? "" : ",") + address.substr(address.find("://") + 3);
  return "redlock://" + nodes;
}

class InterlockPeer final : public Peer {
 public:
  InterlockPeer(const Addresses& addresses, bool best, bool has_best = true)
      : locks_(interlock::connect(url_of(addresses))),
        best_(best),
        has_best_(has_best),
        memory_(addresses.empty()) {}

  [[nodiscard]] std::string version() const override { return "interlock " INTERLOCK_VERSION; }
  [[nodiscard]] std::string settings() const override {
    return best_ ? "coroutines where several work at once" : "a thread per worker";
  }
  [[nodiscard]] bool has_best() const override { return has_best_; }
  [[nodiscard]] int batch() const override { return memory_ ? 10 : 1; }

  std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds ttl) override {
    return std::make_unique<OwnLock>(locks_, name, ttl);
  }

  bool without_threads(const Work& work, std::vector<Rounds>& workers) override {
    // Whoever holds a lock for a while sleeps, and needs a thread for that.
    if (!best_ || work.workers == 1 || work.hold.count() > 0) return false;
    std::latch done(work.workers);
    for (int i = 0; i < work.workers; ++i)
      go_round({locks_, work.lock_of(i), {.ttl = work.ttl}}, workers[static_cast<std::size_t>(i)],
               done);
    done.wait();
    return true;
  }

 private:
  Client locks_;
  bool best_;
  bool has_best_;
  bool memory_;
};

}  // namespace

std::unique_ptr<Peer> interlock_peer(const Addresses& addresses, bool best) {
  return std::make_unique<InterlockPeer>(addresses, best);
}

std::unique_ptr<Peer> interlock_lease_peer(const Addresses& addresses, bool /*best*/) {
  return std::make_unique<InterlockPeer>(Addresses{addresses.at(0) + "?mode=lease"}, true, false);
}

}  // namespace peers
