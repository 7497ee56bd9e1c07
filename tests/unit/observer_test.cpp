// What an observer is told, and that each story it hears has one beginning and one end.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "waiting.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::Waiting;

struct Told {
  Event event;
  std::string resource;
  Owner owner;
  std::uint32_t place;
  Duration elapsed;
  std::optional<Duration> limit;
  std::optional<Errc> error;
  std::string store;
  std::thread::id thread;
};

class Notebook final : public Observer {
 public:
  void on(const Observation& o) noexcept override {
    const std::lock_guard lock(mutex_);
    told_.push_back({o.event, std::string(o.resource), o.claim.owner, o.place, o.elapsed, o.limit,
                     o.error == nullptr ? std::nullopt : std::optional(o.error->errc()),
                     o.store->name, std::this_thread::get_id()});
  }
  std::vector<Told> all() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  std::vector<Told> all(Event event) {
    auto told = all();
    std::erase_if(told, [&](const Told& each) { return each.event != event; });
    return told;
  }
  std::size_t count(Event event) { return all(event).size(); }
  Told the(Event event) {
    const auto told = all(event);
    EXPECT_EQ(told.size(), 1U) << to_string(event);
    return told.at(0);
  }
  std::vector<Event> story() {
    std::vector<Event> events;
    for (const auto& each : all()) events.push_back(each.event);
    return events;
  }

 private:
  std::mutex mutex_;
  std::vector<Told> told_;
};

struct ObserverTest : testing::Test {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Notebook> seen = std::make_shared<Notebook>();
  MemoryStore store{clock};
  Client client{store.open(), {.observer = seen, .clock = clock}};
  Client other{store.open(), {.clock = clock}};
};

TEST_F(ObserverTest, AnUncontendedLeaseIsOpenedAskedGrantedReleased) {
  auto lease = Mutex(client, "orders/17", {.ttl = 30s}).acquire();
  clock->advance(3s);
  lease.release();
  EXPECT_EQ(seen->story(),
            (std::vector{Event::opened, Event::asked, Event::granted, Event::released}));
  for (const auto& each : seen->all()) EXPECT_EQ(each.store, "memory");
  EXPECT_EQ(seen->the(Event::opened).resource, "");
  EXPECT_EQ(seen->the(Event::asked).resource, "orders/17") << "and not the orders above it";
  EXPECT_EQ(seen->the(Event::asked).limit, std::nullopt);
  EXPECT_EQ(seen->the(Event::granted).resource, "orders/17");
  EXPECT_EQ(seen->the(Event::released).elapsed, 3s) << "how long it was held";
  EXPECT_EQ(seen->the(Event::released).owner, seen->the(Event::asked).owner);
}

TEST_F(ObserverTest, AWaiterIsToldItsPlaceAndHowLongItTook) {
  auto held = std::make_optional(Mutex(other, "k").acquire());
  Waiting first(Mutex(other, "k"));
  ASSERT_TRUE(eventually(
      [&] { return other.inspect({.resources = {"k"}}).resources.at(0).waiters.size() == 1; }));
  Waiting second(Mutex(client, "k"), 1h);
  ASSERT_TRUE(eventually([&] { return seen->count(Event::queued) == 1; }));
  EXPECT_EQ(seen->the(Event::queued).place, 1U) << "the first one is ahead";
  EXPECT_EQ(seen->the(Event::asked).limit, 1h);
  clock->advance(5s);
  held.reset();
  { const auto lease = first.lease(); }
  { const auto lease = second.lease(); }
  EXPECT_GE(seen->the(Event::granted).elapsed, 5s);
}

TEST_F(ObserverTest, EachWayToGiveUpIsToldWithItsReason) {
  auto held = Mutex(other, "k", {.ttl = 1h}).acquire();
  EXPECT_FALSE(Mutex(client, "k").try_acquire());
  EXPECT_EQ(seen->the(Event::asked).limit, 0s);
  EXPECT_EQ(seen->the(Event::timed_out).error, Errc::busy);
  {
    Waiting waiting(Mutex(client, "k"), 5s);
    ASSERT_TRUE(eventually([&] { return seen->count(Event::queued) == 1; }));
    clock->advance(5s);
    EXPECT_FALSE(waiting.attempt());
  }
  EXPECT_EQ(seen->all(Event::timed_out).at(1).error, Errc::timed_out);
  EXPECT_EQ(seen->all(Event::timed_out).at(1).elapsed, 5s);
  EXPECT_FALSE(Mutex(client, "k").try_acquire_times({.attempts = 1}));
  EXPECT_EQ(seen->all(Event::timed_out).at(2).error, Errc::exhausted);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(Mutex(client, "k").try_acquire_for(1h, stopped.get_token()));
  EXPECT_EQ(seen->all(Event::timed_out).at(3).error, Errc::cancelled);
  EXPECT_EQ(seen->count(Event::asked), 4U);
  EXPECT_EQ(seen->count(Event::granted), 0U);
}

TEST_F(ObserverTest, ARefusalNamesTheLock) {
  auto held = Mutex(other, "k").acquire();
  EXPECT_THROW((void)Semaphore(client, "k", 3).acquire(), Error);
  const auto refused = seen->the(Event::refused);
  EXPECT_EQ(refused.resource, "k");
  EXPECT_EQ(refused.error, Errc::wrong_kind);
}

TEST_F(ObserverTest, RenewalsAreToldAlsoTheOnesByHand) {
  auto lease = Mutex(client, "k", {.ttl = 30s}).acquire();
  clock->advance(10s);
  ASSERT_TRUE(eventually([&] { return seen->count(Event::renewed) == 1; }));
  EXPECT_GT(seen->the(Event::renewed).elapsed, 29s) << "what is left";
  EXPECT_TRUE(lease.extend(1min));
  EXPECT_EQ(seen->count(Event::renewed), 2U);
  EXPECT_GT(seen->all(Event::renewed).at(1).elapsed, 50s);
}

TEST_F(ObserverTest, ALossIsToldOnceWithItsReason) {
  auto lease = Mutex(client, "k", {.ttl = 30s, .renew = false}).acquire();
  clock->advance(31s);
  ASSERT_TRUE(eventually([&] { return seen->count(Event::lost) == 1; }));
  EXPECT_EQ(lease.release(), LeaseState::lost);
  EXPECT_EQ(seen->the(Event::lost).error, Errc::lost);
  EXPECT_EQ(seen->the(Event::lost).elapsed, 31s);
  EXPECT_EQ(seen->count(Event::released), 0U);
}

TEST_F(ObserverTest, ATokenIsDetachedHereAndAdoptedThere) {
  const auto theirs = std::make_shared<Notebook>();
  const Client there(store.open(), {.observer = theirs, .clock = clock});
  auto lease = Mutex(client, "k", {.ttl = 10min}).acquire();
  clock->advance(2s);
  const auto token = lease.detach();
  EXPECT_EQ(seen->the(Event::detached).elapsed, 2s);
  { auto again = there.adopt(token); }
  EXPECT_EQ(theirs->the(Event::adopted).resource, "k");
  EXPECT_EQ(theirs->count(Event::released), 1U);
  EXPECT_EQ(seen->count(Event::released), 0U);
  EXPECT_EQ(seen->count(Event::lost), 0U);
}

// Out of reach on command.
struct FaultyTest : ObserverTest {
  std::unique_ptr<Chaos> faulty = chaos(store.open());
  Chaos* faults = faulty.get();
  Client remote{std::move(faulty), {.observer = seen, .clock = clock}};
};

TEST_F(FaultyTest, AStoreThatGoesAndComesBackIsToldOnceEach) {
  auto lease = Mutex(remote, "k", {.ttl = 30s}).acquire();
  faults->set({.fail = 1.0});
  clock->advance(10s);
  ASSERT_TRUE(eventually([&] { return seen->count(Event::renewal_failed) >= 1; }));
  EXPECT_THROW((void)Mutex(remote, "other", {.retry = Retry::none()}).acquire(), Error);
  EXPECT_EQ(seen->the(Event::refused).error, Errc::unreachable);
  EXPECT_EQ(seen->all(Event::renewal_failed).at(0).resource, "k");
  EXPECT_EQ(seen->all(Event::renewal_failed).at(0).error, Errc::unreachable);
  EXPECT_GT(seen->all(Event::renewal_failed).at(0).elapsed, 10s) << "what is left";
  EXPECT_EQ(seen->count(Event::store_down), 1U);
  EXPECT_EQ(seen->the(Event::store_down).error, Errc::unreachable);
  faults->set({});
  (void)remote.inspect();
  EXPECT_EQ(seen->count(Event::store_back), 1U);
}

TEST_F(FaultyTest, AReleaseInDoubtEndsTheStoryOnceAndTheCleanUpHasItsOwnEvent) {
  auto lease = Mutex(remote, "k", {.ttl = 30s}).acquire();
  faults->set({.fail = 1.0});
  auto releasing = std::async(std::launch::async, [&] { EXPECT_THROW(lease.release(), Error); });
  while (releasing.wait_for(1ms) != std::future_status::ready) clock->advance(200ms);
  const auto failed = seen->the(Event::release_failed);
  EXPECT_EQ(failed.resource, "k");
  EXPECT_EQ(failed.error, Errc::unreachable);
  ASSERT_TRUE(eventually([&] { return seen->count(Event::cleanup_failed) >= 1; }));
  EXPECT_EQ(seen->all(Event::cleanup_failed).at(0).resource, "k");
  faults->set({});
  ASSERT_TRUE(eventually([&] {
    clock->advance(100ms);
    return other.inspect().resources.empty();
  }));
  EXPECT_EQ(seen->count(Event::release_failed), 1U);
  EXPECT_EQ(seen->count(Event::lost) + seen->count(Event::released), 0U);
}

TEST_F(ObserverTest, AskedComesOnTheThreadThatAsksAlsoWithoutABlockedOne) {
  std::promise<Attempt> done;
  Mutex(client, "k").acquire(Wait::once(), [&](Attempt attempt) {
    done.set_value(std::move(attempt));
  });
  EXPECT_EQ(seen->the(Event::asked).thread, std::this_thread::get_id());
  EXPECT_TRUE(done.get_future().get());
  EXPECT_EQ(seen->count(Event::granted), 1U);
}

TEST_F(ObserverTest, WhatIsBuiltOnLocksMayTellToo) {
  client.tell(Event::found, "report:7", 2s);
  EXPECT_EQ(seen->the(Event::found).resource, "report:7");
  EXPECT_EQ(seen->the(Event::found).elapsed, 2s);
  other.tell(Event::found, "nobody listens");
}

TEST_F(ObserverTest, SeveralObserversAreOneAndNoneIsNone) {
  const auto also = std::make_shared<Notebook>();
  const Client watched(store.open(),
                       {.observer = observers({seen, nullptr, also}), .clock = clock});
  { auto lease = Mutex(watched, "both").acquire(); }
  EXPECT_EQ(also->story(),
            (std::vector{Event::opened, Event::asked, Event::granted, Event::released}));
  EXPECT_EQ(seen->count(Event::released), 1U);
  EXPECT_EQ(observers({nullptr, seen}), seen);
  EXPECT_EQ(observers({}), nullptr);
  EXPECT_EQ(observers({nullptr}), nullptr);
}

}  // namespace
}  // namespace interlock
