// The way to the server is cut, stalled, or loses things. Each test says what has to come of it.
#include <ctime>

#include "backends/redis/scripts.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

using servers::Proxy;

const Options kQuick{.ttl = 600s, .retry = {.attempts = 200, .first = 1ms, .max = 50ms}};

class ConnectionFaults : public RedisTest {
 protected:
  [[nodiscard]] Proxy& proxy() { return proxy_; }
  /// A client behind the proxy, connected.
  [[nodiscard]] Client client() {
    auto made = connect(url(proxy_));
    EXPECT_EQ(made.inspect({.resources = {"idle"}}).resources.size(), 0U);
    return made;
  }
  [[nodiscard]] Waiting queue_up(const Mutex& mutex) {
    const auto before = waiters(mutex.resource());
    Waiting waiting(mutex);
    EXPECT_TRUE(eventually([&] { return waiters(mutex.resource()) > before; }));
    return waiting;
  }
  /// However it ends, the server forgets it.
  static void let_go(Lease lease) {
    try {
      lease.release();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    }
  }

 private:
  Proxy proxy_{server().port()};
};

// Cut at any byte of a command. Expected: it is asked again, and granted once; nothing is left
// behind, neither by it nor by the release.
TEST_F(ConnectionFaults, CutInMidCommand) {
  const auto locks = client();
  const Mutex mutex(locks, "r", kQuick);
  mutex.acquire().release();
  const auto before = proxy().passed(Proxy::to_server);
  mutex.acquire().release();
  const auto both = proxy().passed(Proxy::to_server) - before;
  for (std::uint64_t bytes = 1; bytes < both; bytes += both / 20) {
    SCOPED_TRACE(bytes);
    mutex.acquire().release();
    const auto faults = proxy().faults();
    proxy().cut_after(Proxy::to_server, bytes);
    auto lease = mutex.acquire();
    EXPECT_EQ(holders("r"), 1U);
    let_go(std::move(lease));
    EXPECT_TRUE(eventually([&] { return holders("r") == 0; }));
    proxy().flow();
    EXPECT_EQ(proxy().faults(), faults + 1);
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// Cut at any byte of a reply. Expected: the server has done it, and asking again finds that out: the
// same owner holds it, nobody else does.
TEST_F(ConnectionFaults, CutInMidReply) {
  const auto locks = client();
  const Mutex mutex(locks, "r", kQuick);
  mutex.acquire().release();
  for (std::uint64_t bytes = 1; bytes < 22; bytes += 2) {
    SCOPED_TRACE(bytes);
    const auto faults = proxy().faults();
    proxy().cut_after(Proxy::to_client, bytes);
    auto lease = mutex.acquire();
    EXPECT_EQ(look("r").holders.at(0).owner, lease.owner());
    EXPECT_EQ(look("r").holders.at(0).fence, lease.fence());
    let_go(std::move(lease));
    EXPECT_TRUE(eventually([&] { return holders("r") == 0; }));
    proxy().flow();
    EXPECT_EQ(proxy().faults(), faults + 1);
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// The reply to a renewal or a release is lost. Expected: the renewal is repeated and the lease lives
// on; the release says that it does not know, and the server is told again in the background.
TEST_F(ConnectionFaults, CutInMidReplyToARenewalAndARelease) {
  const auto locks = client();
  auto lease = Mutex(locks, "r", kQuick).acquire();
  proxy().cut_after(Proxy::to_client, 3);
  EXPECT_THROW(lease.extend(600s), Error);
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_TRUE(eventually([&] {
    try {
      return lease.extend(600s);
    } catch (const Error&) {
      return false;
    }
  }));
  proxy().cut_after(Proxy::to_client, 2);
  let_go(std::move(lease));
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// An acquire is stuck on the way until its client has given up, asked again and released. Expected: the
// server never carries it out.
TEST_F(ConnectionFaults, AnAcquireThatArrivesAfterTheReleaseIsNotCarriedOut) {
  const auto locks = connect(url(proxy()) + "?timeout=300ms");
  Mutex(locks, "another").acquire().release();
  proxy().keep(Proxy::to_server, "interlock:late");
  Mutex(locks, "late", kQuick).acquire().release();
  EXPECT_EQ(proxy().faults(), 1);
  proxy().deliver();
  // It is in the server's buffer by now, and so read with the first of these at the latest.
  EXPECT_EQ(console()("PING"), "PONG");
  EXPECT_EQ(console()("PING"), "PONG");
  EXPECT_EQ(holders("late"), 0U);
}

// Cut anywhere in the greeting of a new connection. Expected: another one is made.
TEST_F(ConnectionFaults, CutWhileConnecting) {
  for (std::uint64_t bytes = 1; bytes < 40000; bytes = bytes * 3 + 7) {
    SCOPED_TRACE(bytes);
    proxy().cut_after(Proxy::to_server, bytes);
    EXPECT_TRUE(Mutex(connect(url(proxy())), "r", kQuick).acquire());
    proxy().flow();
  }
  for (std::uint64_t bytes = 1; bytes < 200; bytes += 17) {
    SCOPED_TRACE(bytes);
    proxy().cut_after(Proxy::to_client, bytes);
    EXPECT_TRUE(Mutex(connect(url(proxy())), "r", kQuick).acquire());
    proxy().flow();
  }
}

// The subscriber's connection is cut when it subscribes, and in the middle of the server's answer.
// Expected: the waiter is served when the lock is released, as it looks now and then anyway; and it
// subscribes again.
TEST_F(ConnectionFaults, CutDuringSubscribe) {
  for (const bool in_reply : {false, true}) {
    SCOPED_TRACE(in_reply);
    auto lease = Mutex(connect(url()), "r", kQuick).acquire();
    const auto locks = client();
    const auto faults = proxy().faults();
    if (in_reply) {
      proxy().cut_at(Proxy::to_client, "ubscribe");
    } else {
      proxy().cut_at(Proxy::to_server, "UBSCRIBE");
    }
    auto waiting = queue_up(Mutex(locks, "r", kQuick));
    EXPECT_TRUE(eventually([&] { return proxy().faults() > faults && listeners() == 1; }));
    EXPECT_FALSE(waiting.over());
    const auto fence = lease.fence();
    const auto start = BootClock::now();
    lease.release();
    EXPECT_GT(waiting.lease().fence(), fence);
    EXPECT_LT(BootClock::now() - start, kAboutASecond);
  }
}

// Nobody can subscribe at all. Expected: waiting works, by looking now and then.
TEST_F(ConnectionFaults, NoSubscriptionAtAllIsSlowAndNothingWorse) {
  auto lease = Mutex(connect(url()), "r", kQuick).acquire();
  const auto locks = client();
  proxy().drop(Proxy::to_server, "SUBSCRIBE", 1000);
  auto waiting = queue_up(Mutex(locks, "r", kQuick));
  EXPECT_TRUE(eventually([&] { return proxy().faults() > 0; }));
  const auto start = BootClock::now();
  lease.release();
  EXPECT_TRUE(waiting.lease());
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
}

// The subscriber's connection is made, and nobody answers on it. Expected: a waiter that runs out of time is
// told that the lock was taken, as the store answered all the while.
TEST_F(ConnectionFaults, AHungSubscriptionDoesNotMakeTheStoreUnreachable) {
  auto lease = Mutex(connect(url()), "r", kQuick).acquire();
  const auto locks = client();
  proxy().drop(Proxy::to_server, "SUBSCRIBE", 1000);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Mutex(locks, "r", kQuick).try_acquire_for(1s).outcome(), Outcome::timed_out);
  EXPECT_GT(proxy().faults(), 0);
}

// The same for the first in line, again and again. Expected: it keeps its place.
TEST_F(ConnectionFaults, AHungSubscriptionCostsNobodyItsPlace) {
  auto lease = Mutex(connect(url()), "r", kQuick).acquire();
  const auto locks = client();
  proxy().drop(Proxy::to_server, "SUBSCRIBE", 1000);
  auto first = queue_up(Mutex(locks, "r", kQuick));
  auto second = queue_up(Mutex(connect(url()), "r", kQuick));
  EXPECT_TRUE(eventually([&] { return proxy().faults() > 1; }));
  // It asked half a second ago: its place lasts for a second more once the lock is free, and it asks before.
  EXPECT_TRUE(eventually([&] {
    const auto left = look("r").waiters.at(0).remaining;
    return left > 2300ms && left < 2600ms;
  }));
  lease.release();
  auto earlier = first.lease();
  EXPECT_FALSE(second.over());
  const auto fence = earlier.fence();
  earlier.release();
  EXPECT_GT(second.lease().fence(), fence);
}

// The waiter gave up, and its subscription is lost. Expected: no other one is made again and again for nobody,
// and the next waiter gets one.
TEST_F(ConnectionFaults, ASubscriptionThatNobodyWantsIsGivenUp) {
  auto lease = Mutex(connect(url()), "r", kQuick).acquire();
  const auto locks = client();
  proxy().drop(Proxy::to_server, "SUBSCRIBE", 1000);
  EXPECT_FALSE(Mutex(locks, "r", kQuick).try_acquire_for(100ms));
  auto last = BootClock::now();
  auto tries = proxy().faults();
  EXPECT_TRUE(eventually([&] {
    if (proxy().faults() > tries) last = BootClock::now();
    tries = proxy().faults();
    return BootClock::now() - last > 5s;  // each takes two
  }));
  proxy().flow();
  auto waiting = queue_up(Mutex(locks, "r", kQuick));
  EXPECT_TRUE(eventually([&] { return listeners() == 1; }));
  lease.release();
  EXPECT_TRUE(waiting.lease());
}

// Exactly the message that wakes the waiter is lost. Expected: it costs about a second, no more.
TEST_F(ConnectionFaults, ALostWakeUpCostsAboutASecond) {
  auto lease = Mutex(connect(url()), "r", kQuick).acquire();
  const auto locks = client();
  auto waiting = queue_up(Mutex(locks, "r", kQuick));
  EXPECT_TRUE(eventually([&] { return listeners() == 1; }));
  proxy().drop(Proxy::to_client, "message");
  const auto fence = lease.fence();
  const auto start = BootClock::now();
  lease.release();
  EXPECT_GT(waiting.lease().fence(), fence);
  EXPECT_LT(BootClock::now() - start, kAboutASecond);
  EXPECT_EQ(proxy().faults(), 1) << "the message was never sent";
}

// Replies stop coming, with the connection open. Expected: the holder knows at the end of its
// validity; the caller of a one-shot gets "unreachable", in doubt, after the URL's timeout; and all
// is well when the way is.
TEST_F(ConnectionFaults, AStalledConnectionIsGivenUp) {
  const Client locks = connect(url(proxy()) + "?timeout=300ms");
  auto lease = Mutex(locks, "held", {.ttl = 1s}).acquire();
  proxy().stall(Proxy::to_client);
  try {
    const auto attempt = Mutex(locks, "r", kQuick).try_acquire();
    ADD_FAILURE() << to_string(attempt.outcome());
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
  }
  EXPECT_TRUE(eventually([&] { return lease.lost().stop_requested(); }));
  proxy().flow();
  EXPECT_TRUE(Mutex(locks, "r", kQuick).acquire());
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// A server that takes connections and says nothing, while some callers are patient and some are
// not. Expected: the impatient are told in time, and nobody burns the processor meanwhile.
TEST_F(ConnectionFaults, WaitingForAConnectionCostsNoProcessorTime) {
  proxy().stall(Proxy::to_server);
  const Client locks = connect(url(proxy()));
  Waiting patient(Mutex(locks, "r", kQuick));
  EXPECT_TRUE(eventually([&] { return proxy().connections() > 0; }));
  EXPECT_THROW(static_cast<void>(Mutex(locks, "s").try_acquire_for(300ms)), Error);
  const auto before = std::clock();
  std::this_thread::sleep_for(1s);
  const auto busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy, 0.4) << "seconds of a processor";
  proxy().flow();
  EXPECT_TRUE(patient.lease());
}

// Replies are lost, with the connection open. Expected: as above; what the server did and nobody
// heard of is undone.
TEST_F(ConnectionFaults, SwallowedRepliesLeaveNothingBehind) {
  const Client locks = connect(url(proxy()) + "?timeout=300ms");
  Mutex(locks, "r", kQuick).acquire().release();
  proxy().swallow(Proxy::to_client);
  try {
    const auto attempt = Mutex(locks, "r", kQuick).try_acquire();
    ADD_FAILURE() << to_string(attempt.outcome());
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_TRUE(error.maybe_held());
  }
  proxy().flow();
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

// The connection is lost between the grant and the start of the command. Expected: it is asked again, and the
// command runs.
TEST_F(ConnectionFaults, ACommandIsRunThoughItsFirstRenewalIsLost) {
  proxy().cut_at(Proxy::to_server, redis::Scripts::all().renew.sha1);
  const TemporaryDirectory directory;
  EXPECT_EQ(
      servers::run({INTERLOCK_BIN, "--url", url(proxy()), "run", "-w", "20s", "job", "--", "true"},
                   (directory.path() / "output").string()),
      0);
  EXPECT_EQ(proxy().faults(), 1);
}

// Cut again and again, under work. Expected: nobody is in twice, everybody gets in, nothing is left.
TEST_F(ConnectionFaults, CutAgainAndAgain) {
  std::atomic<int> inside = 0;
  std::atomic<int> done = 0;
  std::atomic<std::uint64_t> last = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, locks = connect(url(proxy()))] {
        for (int n = 0; n < 50; ++n) {
          auto lease = Mutex(locks, "r", kQuick).acquire();
          EXPECT_EQ(++inside, 1);
          EXPECT_GT(lease.fence().value, last.exchange(lease.fence().value));
          --inside;
          let_go(std::move(lease));
          ++done;
        }
      });
    }
    EXPECT_TRUE(eventually([&] {
      proxy().cut();
      std::this_thread::sleep_for(20ms);
      return done == 200;
    }));
  }
  EXPECT_TRUE(eventually([&] { return only_the_fence_is_left(); })) << keys();
}

}  // namespace
}  // namespace interlock::redis_tests
