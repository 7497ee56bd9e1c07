// The process has no file descriptor left when a connection breaks, and has some again later.
#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>

#include "core/file_descriptor.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

/// As long as it lives, this process can open nothing.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    auto low = before_;
    low.rlim_cur = 3;  // what was opened before stays open, and is not opened anew
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    while (taken_.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC))) {
    }
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> taken_;
};

class Outages final : public Observer {
 public:
  void on(const Observation& observation) noexcept override {
    if (observation.event == Event::store_down) ++count;
  }
  std::atomic<int> count = 0;
};

const Options kPatient{.ttl = 600s, .retry = {.attempts = 1000, .first = 1ms, .max = 50ms}};

class Descriptors : public RedisTest {};

// Expected: the caller is told what is missing, and that the store is unreachable.
TEST_F(Descriptors, WithoutAnyTheStoreIsUnreachable) {
  const NoDescriptors none;
  try {
    static_cast<void>(connect(url()));
    ADD_FAILURE() << "it connects";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_NE(std::string(error.what()).find("Too many open files"), std::string::npos)
        << error.what();
  }
}

// Expected: the caller who drives the connection is told the same; and when there are some again, the
// next call gets through, and the lease is renewed.
TEST_F(Descriptors, ACallerIsToldAndTheNextOneGetsThrough) {
  const Client client = connect(url());
  auto lease = Mutex(client, "held", kPatient).acquire();
  EXPECT_EQ(console()("PING"), "PONG");  // connected by now
  {
    const NoDescriptors none;
    EXPECT_EQ(console()("CLIENT KILL TYPE normal"), "1");
    const Mutex mutex(client, "r", {.ttl = 600s, .retry = Retry::none()});
    EXPECT_TRUE(eventually([&] {
      try {
        static_cast<void>(mutex.try_acquire());
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
        return std::string(error.what()).find("Too many open files") != std::string::npos;
      }
      return false;
    }));
  }
  EXPECT_TRUE(Mutex(client, "r", kPatient).acquire());
  EXPECT_TRUE(lease.extend(600s));
}

// Nobody calls; the background thread drives the connections. Expected: it lives on, and whoever
// waits is served when there are descriptors again.
TEST_F(Descriptors, TheBackgroundThreadGoesOn) {
  auto lease = Mutex(onlooker(), "r", kPatient).acquire();
  const auto outages = std::make_shared<Outages>();
  const Client client = connect(url(), {.observer = outages});
  std::promise<Attempt> made;
  Mutex(client, "r", kPatient).acquire(Wait::forever(), [&](Attempt attempt) {
    made.set_value(std::move(attempt));
  });
  EXPECT_TRUE(eventually([&] { return waiters("r") == 1 && listeners() == 1; }));
  {
    const NoDescriptors none;
    EXPECT_EQ(console()("CLIENT KILL TYPE normal"), "2");
    EXPECT_EQ(console()("CLIENT KILL TYPE pubsub"), "1");
    EXPECT_TRUE(eventually([&] { return outages->count > 0; }));
  }
  EXPECT_TRUE(eventually([&] {
    try {
      return lease.extend(600s);
    } catch (const Error&) {
      return false;
    }
  }));
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(made.get_future().get().value());
}

}  // namespace
}  // namespace interlock::redis_tests
