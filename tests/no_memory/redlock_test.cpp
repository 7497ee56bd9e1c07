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
    EXPECT_EQ(::listen(listener_, 5), 0);
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

// Number 205 in docs/proof.md.
TEST(NoMemoryForRedlock, ACallThatCouldNotKeepItsReplyEndsNoProcess) {
  const Exempt me;
  const std::array<SilentServer, 3> servers;
  std::vector<RedlockGroup::Member> members;
  for (const auto& server : servers) members.push_back(server.member());
  Redlock store("silent:", members, {});
  const auto claim = claim_on("a");
  using Told = std::shared_ptr<std::atomic<int>>;
  const auto call = [&](const Told& told) {
    store.acquire(claim, false, {.deadline = BootClock::now() + 1min},
                  [told](const Answer&) { ++*told; });
  };
  auto told = std::make_shared<std::atomic<int>>(0);
  call(told);
  ASSERT_TRUE(eventually([&] { return *told == 1; }));
  std::vector<Told> all;
  long next = 1;
  for (bool fails = true; fails; ++next) {
    const auto before = failed.load();
    told = all.emplace_back(std::make_shared<std::atomic<int>>(0));
    fails_at = allocations + next;
    exempt = false;
    try {
      call(told);
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      const Exempt again;
      ADD_FAILURE() << "after failure of allocation " << next << ": " << error.what();
    }
    exempt = true;
    fails_at = 0;
    fails = failed > before;
    if (fails) std::this_thread::sleep_for(25ms);  // a node may take 20ms
  }
  EXPECT_TRUE(eventually([&] { return *told == 1; })) << "of the call that found memory";
  for (const auto& each : all) EXPECT_LE(*each, 1);
  EXPECT_GT(next, 5) << "it allocates something";
}

TEST(NoMemoryForRedlock, ALateReplyIsHeardThoughTheDeadlineFoundNoMemory) {
  const Exempt me;
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
