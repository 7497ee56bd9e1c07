// The parts of the model that know nothing of locks: events in their order, cores that are shared,
// lists of those who wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

namespace cli::scale {

using Ns = std::int64_t;

enum class Then : std::uint8_t {
  ask,         ///< a process has thought enough
  send,        ///< the caller has done its part of a call
  arrive,      ///< the call is at the server
  enter,       ///< it found the gate open
  served,      ///< the server has done its part
  flushed,     ///< the log is on disk
  reply,       ///< the answer is at the caller
  answered,    ///< and was read
  wake,        ///< a wake-up is at the waiter
  nothing,     ///< somebody has done what nobody waits for
  beat,        ///< a waiter has waited for long
  give_back,   ///< a holder is done
  renew,       ///< a third of a TTL has passed
  keep_alive,  ///< the same for one of the leases that a process has besides
};

struct Event {
  Ns at = 0;
  std::uint64_t order = 0;  ///< of those at the same time, the first comes first
  std::int32_t who = 0;     ///< a process, a call or a server
  std::uint32_t turn = 0;   ///< of a process: what belongs to an earlier turn is void
  Then then{};
  std::int8_t pool = -1;  ///< whose core is free again
};

class Agenda {
 public:
  void add(Event event) {
    event.order = ++order_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  Event next() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto event = heap_.back();
    heap_.pop_back();
    return event;
  }
  [[nodiscard]] std::uint64_t events() const { return order_; }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
  std::vector<Event> heap_{};
  std::uint64_t order_ = 0;
};

/// Cores that serve whoever comes, in turn.
class Cores {
 public:
  explicit Cores(int count) : count_(count) {}

  struct Task {
    Ns need = 0;
    Event then{};
  };
  /// True: it runs now. Else it will when one of those before it is done.
  bool start(const Task& task) {
    if (count_ != 0 && running_ >= count_) {
      waiting_.push_back(task);
      return false;
    }
    ++running_;
    return true;
  }
  /// One is done; the next one, if any, runs now.
  bool done(Task& next) {
    --running_;
    if (waiting_.empty()) return false;
    next = waiting_.front();
    waiting_.pop_front();
    ++running_;
    return true;
  }
  void worked(Ns time) { busy_ += time; }
  [[nodiscard]] Ns busy() const { return busy_; }
  [[nodiscard]] int count() const { return count_; }
  void forget() { busy_ = 0; }

 private:
  int count_;  // 0: as many as it takes
  int running_ = 0;
  Ns busy_ = 0;
  std::deque<Task> waiting_{};
};

/// One server: its threads, and its log.
struct Server {
  std::int8_t pool = 0;
  int working = 0;
  std::deque<int> calls{};  ///< that wait for a thread
  bool flushing = false;
  std::vector<int> batch{};   ///< being written
  std::vector<int> logged{};  ///< the next batch
  Ns busy = 0;
  Ns flush_busy = 0;
};

}  // namespace cli::scale
