// A Redlock while allocations fail.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>

#include "backends/redis/redlock_store.hpp"
#include "eventually.hpp"
#include "no_memory/failing.hpp"

namespace interlock::redis {
namespace {

using namespace std::chrono_literals;
using namespace no_memory;
using testing_support::eventually;

Claim claim_on(const char* name) {
  return {.owner = {.high = 0, .low = 7},
          .parts = {{.resource = name}},
          .ttl = 40ms,
          .who = std::make_shared<const Who>()};
}

/// Accepts connections and never replies.
class SilentServer {
 public:
  SilentServer()
      : path_(testing::TempDir() + "silent_" + std::to_string(::getpid()) + "_" +
              std::to_string(++count_)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 1000), 0);  // they are never accepted
  }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  ~SilentServer() {
    ::close(listener_);
    std::filesystem::remove(path_);
  }
  [[nodiscard]] RedlockGroup::Member member() const {
    return {.name = path_, .endpoint = {.socket = path_}, .access = {}};
  }

 private:
  static inline int count_ = 0;
  std::string path_;
  int listener_ = -1;
};

struct NoMemoryForRedlock : testing::Test {
  using Told = std::shared_ptr<std::atomic<int>>;

  static Told call(Redlock& store) {
    const auto told = std::make_shared<std::atomic<int>>(0);
    store.acquire(claim_on("a"), false, {.deadline = BootClock::now() + 1min},
                  [told](const Answer&) { ++*told; });
    return told;
  }
  /// False: it did not make so many allocations.
  static bool fails_at_allocation(long number, Redlock& store) {
    const auto before = failed.load();
    chosen = only_chosen = true;
    fails_at = allocations + number;
    exempt = false;
    try {
      (void)call(store);
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      const Exempt again;
      ADD_FAILURE() << "after failure of allocation " << number << ": " << error.what();
    }
    exempt = true;
    fails_at = 0;
    chosen = only_chosen = false;
    return failed > before;
  }
  static Traits traits() {
    Traits traits;
    traits.call_timeout = 5s;
    return traits;
  }
  [[nodiscard]] std::vector<RedlockGroup::Member> members() const {
    std::vector<RedlockGroup::Member> members;
    for (const auto& server : servers) members.push_back(server.member());
    return members;
  }

  const Exempt me;
  const std::array<SilentServer, 3> servers;
};

// Number 205 in docs/proof.md.
TEST_F(NoMemoryForRedlock, ACallThatCouldNotKeepItsReplyEndsNoProcess) {
  Redlock store("silent:", members(), traits());
  auto told = call(store);
  ASSERT_TRUE(eventually([&] { return *told == 1; }));
  long next = 1;
  while (fails_at_allocation(next, store)) {
    ++next;
    std::this_thread::sleep_for(25ms);  // a node may take 20ms
  }
  told = call(store);
  EXPECT_TRUE(eventually([&] { return *told == 1; }));
  EXPECT_GT(next, 5) << "it allocates something";
}

TEST_F(NoMemoryForRedlock, ALateReplyIsHeardThoughTheDeadlineFoundNoMemory) {
  const auto claim = std::make_shared<const Claim>(claim_on("a"));
  long next = 1;
  for (bool fails = true; fails; ++next) {
    RedlockCalls calls({.names = {"one", "two", "three"}, .where = "all"}, 5s);
    const TimePoint begun{1h};
    RedlockCalls::Actions asked, first, rest;
    calls.renew(claim, {}, {.time = begun}, asked);
    ASSERT_EQ(asked.sends.size(), 3U);
    const auto before = failed.load();
    fails_at = allocations + next;
    exempt = false;
    try {
      calls.tick({.time = begun + 1s}, first);
    } catch (const std::bad_alloc&) {
    }
    exempt = true;
    fails_at = 0;
    fails = failed > before;
    for (const auto& send : asked.sends)
      EXPECT_NO_THROW(calls.heard(send.letter, send.node,
                                  {.said = Vote::Said::granted, .numbers = {5}},
                                  {.time = begun + 1s}, rest));
    EXPECT_NO_THROW(calls.tick({.time = begun + 1s}, rest));
    EXPECT_EQ(calls.next_tick(), TimePoint::max());
    EXPECT_LE(first.answers.size() + rest.answers.size(), 1U);
  }
  EXPECT_GT(next, 5) << "it allocates something";
}

}  // namespace
}  // namespace interlock::redis
