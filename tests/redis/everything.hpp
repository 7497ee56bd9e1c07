// The rights that the library needs, and a use of all of them.
#pragma once

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {

// Without one of these, something does not work.
inline const std::vector<std::string> kNeeded{
    "evalsha", "eval",  "get",   "set",    "getset", "del",     "exists",  "time",
    "pttl",    "hget",  "hset",  "hdel",   "hvals",  "hgetall", "pexpire", "zadd",
    "zrem",    "zcard", "zrank", "zscore", "zrange", "publish"};
// Without these, all works: only slower, unnamed, or with locks that a late message may hold.
inline const std::vector<std::string> kHelpful{"subscribe",   "script|load", "client|setname",
                                               "client|info", "client|kill", "info"};
// Only `interlock list` and Client::inspect without names need this.
inline const std::string kToList = "scan";

/// Uses everything there is, and throws what goes wrong.
inline void use_everything(const Client& first, const Client& second) {
  const Options options{.ttl = 600s, .retry = Retry::none()};
  const auto give_back = [](Lease lease) { EXPECT_EQ(lease.release(), LeaseState::released); };
  {
    auto lease = Mutex(first, "mutex", options).acquire();
    EXPECT_TRUE(lease.extend(600s));
    const auto queued = [&](const Waiting& one, std::size_t count) {
      return eventually([&] {
        const auto found = first.inspect({.resources = {"mutex"}}).resources;
        return one.over() || (found.size() == 1 && found[0].waiters.size() == count);
      });
    };
    Waiting waiting(Mutex(second, "mutex", options));
    EXPECT_TRUE(queued(waiting, 1));
    Waiting behind(Mutex(second, "mutex", options));
    EXPECT_TRUE(queued(behind, 2));
    if (waiting.over()) give_back(waiting.lease());  // throws what went wrong
    give_back(std::move(lease));
    give_back(waiting.lease());
    give_back(behind.lease());
  }
  {
    const RwLock lock(first, "rw", options);
    auto read = lock.read();
    EXPECT_TRUE(read.extend(600s));
    auto more = RwLock(second, "rw", options).read();
    Waiting writer(RwLock(second, "rw", options).writer());
    EXPECT_FALSE(lock.try_write());
    EXPECT_FALSE(read.try_upgrade());
    auto upgrade = std::async(std::launch::async, [&] { return read.try_upgrade_for(kPatience); });
    EXPECT_TRUE(eventually([&] {
      const auto found = first.inspect({.resources = {"rw"}}).resources;
      return found.size() == 1 && found[0].waiters.size() == 2;
    }));
    give_back(std::move(more));
    EXPECT_TRUE(upgrade.get());
    EXPECT_TRUE(read.downgrade());
    give_back(std::move(read));
    give_back(writer.lease());
  }
  if (first.traits().slots) {
    auto slot = Semaphore(first, "slots", 2, options).acquire();
    auto more = Semaphore(second, "slots", 2, options).acquire();
    EXPECT_FALSE(Semaphore(first, "slots", 2, options).try_acquire());
    give_back(std::move(slot));
    give_back(std::move(more));
  }
  {
    auto again = options;
    again.identity = "me";
    auto outer = Mutex(first, "tree/leaf", again).acquire();
    auto inner = Mutex(second, "tree/leaf", again).acquire();
    EXPECT_FALSE(Mutex(second, "tree", options).try_acquire());
    give_back(std::move(outer));
    give_back(std::move(inner));
  }
  give_back(MultiLock(first, {"one", "two", "three"}, options).acquire());
  {
    // A place in the queue whose owner is gone is swept away by whoever comes next.
    auto held = Mutex(first, "swept", options).acquire();
    EXPECT_FALSE(Mutex(second, "swept", options).try_acquire_for(10ms));
    give_back(std::move(held));
  }
  EXPECT_TRUE(eventually([&] { return first.inspect().resources.empty(); }));
}

}  // namespace interlock::redis_tests
