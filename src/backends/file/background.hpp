// The one thread of a file store: it takes calls whose callers can't wait, and listens.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/file/store.hpp"

namespace interlock::file {

struct Job {
  Operation operation;
  TimePoint asked;
  TimePoint deadline;
  Reply reply;
};

struct InspectionJob {
  Inspection inspection;
  TimePoint asked;
  TimePoint deadline;
  Report report;
};

/// Started with the first lease, waiter or job. Never waits for a lock file: a shard that is
/// locked holds up its own calls and nobody else's. Calls for the same shards, such as the
/// heartbeats of many waiters for one resource, are done together. Thread-safe.
class Background {
 public:
  explicit Background(Store& store);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() = default;

  /// What the thread needs, the store and this object included: it holds on to it while it runs.
  void set_keep_alive(std::weak_ptr<void> all) { keep_alive_ = std::move(all); }

  /// Ends the thread: it tries what is left once more, and then answers it with an error. May be
  /// called by the thread itself, from a reply: then it ends a little later, and answers nothing.
  void close();

  void push(Job job);
  void push(InspectionJob job);
  /// There is something new to listen to, see Store::has_news.
  void attend();

 private:
  void start();
  void kick() const;
  void run();
  void listen(Duration longest);
  void take_incoming();
  bool serve();
  bool serve(std::deque<Job>& jobs);
  void give_up();
  void answer(const Job& job, Answer answer) const;

  Store& store_;
  std::weak_ptr<void> keep_alive_;
  FileDescriptor kick_;
  std::mutex mutex_;
  bool stopping_ = false;
  std::vector<Job> incoming_;
  std::vector<InspectionJob> incoming_inspections_;
  std::thread thread_;

  // The thread's own. Calls are kept by their shards, in order of arrival.
  bool silent_ = false;
  std::map<std::vector<ShardId>, std::deque<Job>> waiting_;
  std::deque<InspectionJob> inspections_;
};

}  // namespace interlock::file
