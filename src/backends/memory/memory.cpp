// The memory store: the lock table, a mutex, and nothing else.

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "core/lock_table.hpp"
#include "interlock/stores.hpp"

namespace interlock {

class MemoryStore::Table {
 public:
  explicit Table(std::shared_ptr<Clock> time)
      : clock_(time ? std::move(time) : system_clock()),
        // From the wall clock, so that a program's next run goes on with larger fences.
        fence_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count())),
        table_(
            {.next_fence = [this](const std::string&) { return ++fence_; },
             // Waiters die with the store's process, so this is only for those who were forgotten.
             .ticket_ttl = std::chrono::minutes(1)}) {}

  std::uint64_t join(std::weak_ptr<const WakeSink> sink) {
    const std::lock_guard lock(mutex_);
    sinks_[++last_home_] = std::move(sink);
    return last_home_;
  }

  void part(std::uint64_t home) {
    const std::lock_guard lock(mutex_);
    sinks_.erase(home);
  }

  Answer acquire(const Claim& claim, bool queue, std::uint64_t home) {
    return change([&](TimePoint now, std::vector<Wake>& wakes) {
      return table_.acquire(claim, queue, {.home = home}, now, wakes);
    });
  }

  Answer renew(const Claim& claim, std::uint64_t home) {
    return change([&](TimePoint now, std::vector<Wake>& wakes) {
      return table_.renew(claim, {.home = home}, now, wakes);
    });
  }

  Answer release(const Claim& claim, std::uint64_t home) {
    return change([&](TimePoint now, std::vector<Wake>& wakes) {
      return table_.release(claim, home, now, wakes);
    });
  }

  Snapshot inspect(const Query& query) {
    const std::lock_guard lock(mutex_);
    return {.resources = table_.inspect(query, clock_->now())};
  }

 private:
  template <class Step>
  Answer change(const Step& step) {
    std::vector<Wake> wakes;
    std::unique_lock lock(mutex_);
    auto answer = step(clock_->now(), wakes);
    if (wakes.empty()) return answer;
    std::vector<std::pair<std::shared_ptr<const WakeSink>, Owner>> calls;
    for (const auto& wake : wakes) {
      if (const auto it = sinks_.find(wake.home); it != sinks_.end()) {
        if (auto sink = it->second.lock()) calls.emplace_back(std::move(sink), wake.owner);
      }
    }
    lock.unlock();
    for (const auto& [sink, owner] : calls) (*sink)(owner);
    return answer;
  }

  std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::uint64_t fence_;
  LockTable table_;
  std::map<std::uint64_t, std::weak_ptr<const WakeSink>> sinks_;
  std::uint64_t last_home_ = 0;
};

namespace {

class Memory final : public Backend {
 public:
  explicit Memory(std::shared_ptr<MemoryStore::Table> table) : table_(std::move(table)) {
    traits_.name = "memory";
    traits_.where = "memory:";
    traits_.across_processes = false;
    traits_.across_hosts = false;
    traits_.heartbeat = std::chrono::seconds(10);
    traits_.drift_fixed = std::chrono::microseconds(100);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() override { table_->part(home_); }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }

  void acquire(const Claim& claim, bool queue, Call, Reply reply) override {
    reply(table_->acquire(claim, queue, home_));
  }
  void renew(const Claim& claim, Call, Reply reply) override { reply(table_->renew(claim, home_)); }
  void release(const Claim& claim, Call, Reply reply) override {
    reply(table_->release(claim, home_));
  }
  void inspect(const Query& query, Call, Report report) override { report(table_->inspect(query)); }

  void on_wake(WakeSink sink) override {
    sink_ = std::make_shared<const WakeSink>(std::move(sink));
    home_ = table_->join(sink_);
  }

 private:
  std::shared_ptr<MemoryStore::Table> table_;
  std::shared_ptr<const WakeSink> sink_;
  std::uint64_t home_ = 0;
  Traits traits_;
};

// memory:name is one store for the whole process; memory: is a new one each time.
std::unique_ptr<Backend> open_memory(Url url, const std::shared_ptr<Clock>& clock) {
  url.expect_all_taken({});
  if (!url.authority.empty())
    throw Error(Errc::invalid, "a memory store has a name at most, as in memory:name");
  const auto name = std::move(url.path);
  if (name.empty()) return memory_store(clock);
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<MemoryStore::Table>> named;
  const std::lock_guard lock(mutex);
  std::erase_if(named, [](const auto& entry) { return entry.second.expired(); });
  auto table = named[name].lock();
  if (!table) {
    table = std::make_shared<MemoryStore::Table>(clock);
    named[name] = table;
  }
  return std::make_unique<Memory>(std::move(table));
}

}  // namespace

MemoryStore::MemoryStore(std::shared_ptr<Clock> clock)
    : table_(std::make_shared<Table>(std::move(clock))) {}

std::unique_ptr<Backend> MemoryStore::open() const { return std::make_unique<Memory>(table_); }

std::unique_ptr<Backend> memory_store(std::shared_ptr<Clock> clock) {
  return MemoryStore(std::move(clock)).open();
}

namespace stores {
StoreEntry memory() {
  return {.name = "memory", .schemes = {"memory"}, .example = "memory:", .open = open_memory};
}
}  // namespace stores

}  // namespace interlock
