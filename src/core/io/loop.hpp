// Who drives the connections: whoever waits for a reply does it himself, one at a time (the
// leader); the others sleep until their reply came or it is their turn to lead. When nobody waits
// and there is something to do, a background thread leads.
//
// A single caller so pays for no thread but his own, and many share one system call.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/io/connection.hpp"
#include "core/io/event_descriptor.hpp"
#include "core/process.hpp"

namespace interlock::io {

class Loop {
 public:
  /// Throws Error (unreachable) if the process has no descriptor or thread left.
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { stop(); }

  /// Nobody may lend any more, and no request is told what came of it.
  void stop();

  using Handle = std::shared_ptr<Connection>;

  // Any thread:
  void add(const Handle& connection);
  void remove(const Handle& connection);
  /// Runs on the leader's thread, which alone may touch the connections; they are advanced after it.
  /// `urgent`: nobody lends a thread until this is over, which Finished::urgent counts.
  void post(Task<TimePoint, Finished&> what, bool urgent);

  /// Backend::lend.
  void lend(Signal& signal, TimePoint until);

 private:
  enum class Leader : std::uint8_t { nobody, lender, background };
  struct Lender {
    Signal* signal;
    bool promoted = false;
  };
  /// Wakes the leader out of poll().
  class Bell final : public Signal::Alarm {
   public:
    void ring() noexcept override { io::ring(event_); }
    void silence() const noexcept { io::silence(event_); }
    [[nodiscard]] int fd() const noexcept { return event_.get(); }

   private:
    const FileDescriptor event_ = make_event_descriptor();
  };
  using Post = Task<TimePoint, Finished&>;
  using Lock = std::unique_lock<std::mutex>;

  /// Leads until the signal is set or its time has come; as background, until it is wanted no more.
  void lead(Lock& lock, Signal& signal, TimePoint until);
  void step_down();
  /// Hands leadership on, however it ends.
  class Term {
   public:
    Term(Loop& loop, Lock& lock) : loop_(loop), lock_(lock) {}
    Term(const Term&) = delete;
    Term& operator=(const Term&) = delete;
    ~Term() {
      if (!lock_.owns_lock()) lock_.lock();
      loop_.step_down();
    }

   private:
    Loop& loop_;
    Lock& lock_;
  };
  void take_posts(TimePoint now, Finished& finished);
  void tell(Finished& finished);
  /// Until something happens, and handles it.
  void wait(Signal& signal, TimePoint until, Finished& finished);
  /// The connection whose answer is all there is to wait for.
  [[nodiscard]] Connection* only_expected(Signal& signal, TimePoint until) const;
  void wait_for_answer(Connection& connection, Finished& finished);
  [[nodiscard]] bool needed() const { return watched_ || !posts_.empty(); }
  void run();
  void end_thread();

  /// When the process ends, the background thread does so first: the libraries that connections use
  /// (OpenSSL) may take themselves apart. Whoever waits still drives.
  class Exit final : public core::AtExit, public std::enable_shared_from_this<Exit> {
   public:
    explicit Exit(Loop& loop) : loop_(&loop) {}
    void at_exit() noexcept override {
      const std::lock_guard lock(mutex_);
      if (loop_ == nullptr) return;
      loop_->end_thread();
      core::keep_to_the_end(shared_from_this());
    }
    void forget() {
      const std::lock_guard lock(mutex_);
      loop_ = nullptr;
    }

   private:
    std::mutex mutex_;
    Loop* loop_;
  };

  Bell bell_;
  std::mutex mutex_;
  // Guarded by the mutex:
  std::vector<Post> posts_;
  std::vector<Handle> connections_;
  Leader leader_ = Leader::nobody;
  std::list<Lender*> followers_;
  bool polling_ = false;
  bool wanted_ = false;      ///< the background thread should make way for a lender
  bool watched_ = false;     ///< some connection is active
  int urgent_ = 0;           ///< requests that no lender waits for
  std::uint64_t turns_ = 0;  ///< how often somebody stepped down
  bool stop_ = false;
  bool resting_ = false;  ///< the background thread sleeps until it is needed
  std::condition_variable background_;
  // The leader's own:
  std::vector<Post> taken_;
  std::vector<Handle> driven_;
  bool alone_ = false;  ///< nobody else wanted anything when it last looked
  bool quick_ = false;  ///< the last answer came before it was worth sleeping
  TimePoint looked_{};  ///< when all connections were last looked at
  Signal never_;
  std::thread thread_;
  bool stopped_ = false;
  const std::shared_ptr<Exit> exit_ = std::make_shared<Exit>(*this);
};

}  // namespace interlock::io
