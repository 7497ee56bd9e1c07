#include "interlock/task_queue.hpp"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <set>

#include "interlock/mutex.hpp"

namespace interlock {

namespace {

constexpr int kLooks = 3;
constexpr Duration kShortestKeep = std::chrono::milliseconds(50);

Worker worker_of(const Entry& holder) {
  using std::chrono::system_clock;
  return {
      .label = holder.who.label,
      .host = holder.who.host,
      .pid = holder.who.pid,
      .finished = holder.who.pid == 0,
      .since = system_clock::now() - std::chrono::duration_cast<system_clock::duration>(holder.age),
      .remaining = holder.remaining};
}

}  // namespace

class TaskQueue::State {
 public:
  State(Client client, const std::string& queue, TaskOptions options)
      : client_(std::move(client)), prefix_("task:" + queue + ":"), options_(std::move(options)) {
    if (queue.empty() || queue.find(':') != std::string::npos) {
      throw Error(Errc::invalid, "a queue's name is not empty and has no colon",
                  {.resource = prefix_});
    }
    if (options_.at_least_for < Duration::zero())
      throw Error(Errc::invalid, "at_least_for has to be 0s or more", {.resource = prefix_});
    if (options_.at_least_for > Duration::zero()) check_ttl(options_.at_least_for, prefix_);
    (void)work_lock("0", {});
  }

  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] std::string resource(const std::string& id) const {
    if (id.empty()) throw Error(Errc::invalid, "a task needs an id", {.resource = prefix_});
    return prefix_ + id;
  }

  /// A claim has an identity of its own, so that what keeps it afterwards can follow without a gap.
  [[nodiscard]] std::string new_identity() const {
    return options_.at_least_for > Duration::zero() ? Owner::random().to_string() : "";
  }
  [[nodiscard]] Mutex work_lock(const std::string& id, const std::string& identity) const {
    return {client_, resource(id),
            Options{.ttl = options_.ttl,
                    .label = options_.label,
                    .identity = identity,
                    .margin = options_.margin,
                    .hierarchy = false}};
  }

  /// Until at_least_for has passed since it was claimed. Nothing: it has.
  [[nodiscard]] std::optional<Duration> rest(const Lease& lease) const {
    const auto age =
        std::chrono::system_clock::now() - lease.acquired_at();  // by the client's clock
    const auto rest = options_.at_least_for - std::chrono::duration_cast<Duration>(age);
    if (rest <= Duration::zero()) return std::nullopt;
    return std::max(rest, kShortestKeep);
  }

  /// Beside the worker's own claim, by its identity: who keeps it now. Nothing: that claim is lost.
  std::optional<Owner> keep(const std::string& id, const std::string& identity, Duration rest) {
    auto attempt = Mutex(client_, resource(id),
                         Options{.ttl = rest,
                                 .label = options_.label,
                                 .identity = identity,
                                 .renew = false,
                                 .hierarchy = false,
                                 .process = 0})
                       .try_acquire();
    if (!attempt) return std::nullopt;
    const auto owner = attempt->owner();
    if (client_.traits().detaches) {
      (void)attempt->detach();
      return owner;
    }
    std::vector<Lease> ended;  // let go of after the lock
    const std::lock_guard lock(mutex_);
    const auto first_ended = std::stable_partition(kept_.begin(), kept_.end(),
                                                   [](const Lease& lease) { return bool(lease); });
    std::move(first_ended, kept_.end(), std::back_inserter(ended));
    kept_.erase(first_ended, kept_.end());
    kept_.push_back(std::move(*attempt));
    return owner;
  }

  /// It was not the worker's to keep.
  void give_up(const std::string& id, const Owner& keeper) {
    Lease kept;
    {
      const std::lock_guard lock(mutex_);
      const auto it = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const Lease& lease) { return lease.owner() == keeper; });
      if (it != kept_.end()) {
        kept = std::move(*it);
        kept_.erase(it);
      }
    }
    if (kept) {
      kept.release();
    } else {
      client_.evict(resource(id), keeper);
    }
  }

  void linger(const std::stop_token& stop) {
    const auto next = [this]() -> std::stop_token {
      const std::lock_guard lock(mutex_);
      const auto held =
          std::find_if(kept_.begin(), kept_.end(), [](const Lease& lease) { return bool(lease); });
      return held == kept_.end() ? std::stop_token() : held->lost();
    };
    std::mutex mutex;
    std::condition_variable_any over;
    for (auto ends = next(); ends.stop_possible() && !stop.stop_requested(); ends = next()) {
      const std::stop_callback wake(stop, [&] {
        { const std::lock_guard lock(mutex); }
        over.notify_all();
      });
      std::unique_lock lock(mutex);
      over.wait(lock, ends, [&] { return stop.stop_requested(); });
    }
  }

 private:
  const Client client_;
  const std::string prefix_;
  const TaskOptions options_;
  std::mutex mutex_;
  std::vector<Lease> kept_;  // where a lease can't outlive its client
};

struct Task::Claimed {
  std::shared_ptr<TaskQueue::State> queue;
  std::string id;
  std::string identity;
  Lease lease;
};

Task::Task(std::unique_ptr<Claimed> claimed) noexcept : claimed_(std::move(claimed)) {}
Task::Task(Task&&) noexcept = default;
Task& Task::operator=(Task&&) noexcept = default;
Task::~Task() = default;

const std::string& Task::id() const { return claimed_->id; }
std::stop_token Task::lost() const { return claimed_->lease.lost(); }
const Lease& Task::lease() const { return claimed_->lease; }
Task::operator bool() const noexcept {
  return claimed_ && claimed_->lease.state() == LeaseState::held;
}

LeaseState Task::done() {
  auto& [queue, id, identity, lease] = *claimed_;
  const auto rest = queue->rest(lease);
  // Not by our own word alone: what was taken from us behind our back is not ours to keep.
  if (!rest || !lease.extend(lease.ttl())) return lease.release();
  // The one that keeps it first, then ours: nobody gets in between.
  const auto keeper = queue->keep(id, identity, *rest);
  const auto state = lease.release();
  if (keeper && state == LeaseState::lost) queue->give_up(id, *keeper);
  return keeper ? state : LeaseState::lost;
}

LeaseState Task::give_back() { return claimed_->lease.release(); }

TaskQueue::TaskQueue(Client client, const std::string& queue, TaskOptions options)
    : state_(std::make_shared<State>(std::move(client), queue, std::move(options))) {}

TaskAttempt TaskQueue::claim(const std::string& id) const {
  const auto identity = state_->new_identity();
  const auto lock = state_->work_lock(id, identity);
  std::optional<Worker> other;
  for (int i = 0; i < kLooks && !other; ++i) {
    if (auto attempt = lock.try_acquire()) {
      return TaskAttempt(Task(std::make_unique<Task::Claimed>(
          Task::Claimed{state_, id, identity, std::move(*attempt)})));
    }
    other = worker(id);
  }
  return TaskAttempt(std::move(other));
}

std::optional<Task> TaskQueue::claim_any(const std::vector<std::string>& ids) const {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const auto& id : ids) names.push_back(state_->resource(id));
  std::set<std::string> taken;  // one look at all is cheaper than a try at each
  if (names.size() > 1) {
    for (const auto& state : state_->client().inspect({.resources = names}).resources) {
      if (!state.holders.empty()) taken.insert(state.resource);
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (taken.contains(names[i])) continue;
    if (auto task = claim(ids[i])) return std::move(*task);
  }
  return std::nullopt;
}

std::optional<Worker> TaskQueue::worker(const std::string& id) const {
  std::optional<Worker> found;
  const auto snapshot = state_->client().inspect({.resources = {state_->resource(id)}});
  for (const auto& state : snapshot.resources) {
    for (const auto& holder : state.holders) {
      // One that is just done is there twice for a moment: at work, and kept.
      if (!found || found->finished) found = worker_of(holder);
    }
  }
  return found;
}

void TaskQueue::linger(const std::stop_token& stop) const { state_->linger(stop); }

void TaskQueue::finish(Task& task) {
  if (task.done() != LeaseState::lost) return;
  throw Error(Errc::lost,
              "lost while the task ran (" + task.lease().lost_reason() +
                  "): another worker may have been at it, too",
              {.resource = task.lease().resource()});
}

}  // namespace interlock
