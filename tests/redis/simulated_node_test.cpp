// The simulated node of lab/simulation and the scripts on a real server: whatever is asked of both, in any order, they
// answer alike.
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <thread>

#include "backends/redis/redlock_group.hpp"
#include "node.hpp"
#include "servers/redis_server.hpp"
#include "trace.hpp"

namespace interlock::redis {
namespace {

using Kind = Message::Kind;
using Said = Vote::Said;
using namespace std::chrono_literals;

class BothNodes {
 public:
  explicit BothNodes(const servers::RedisServer& server, const std::string& prefix)
      : group_(
            prefix, {{.name = server.address(), .endpoint = endpoint(server), .access = {}}},
            [](std::size_t, const Owner&) {}, [](const Error&) {}) {
    simulated_.restart(simulation::Node::Restart::empty, 1);
    for (const auto kind : {Kind::look, Kind::wait, Kind::repair}) {
      Message message{.kind = kind, .number = kind == Kind::repair ? 1000U : 0U};
      message.born = born_real_;
      const auto real = ask(message);
      message.born = born_simulated_;
      const auto simulated = serve(message);
      born_real_ = real.state.born;
      born_simulated_ = simulated.state.born;
      EXPECT_EQ(describe(real), describe(simulated));
    }
  }

  /// What the server says. They need not agree any more once places in line may be forgotten.
  Vote both(const Message& message) {
    auto real = ask(message);
    const auto simulated = serve(message);
    if (!over()) {
      EXPECT_EQ(describe(real), describe(simulated)) << simulation::describe(message);
    }
    return real;
  }
  [[nodiscard]] bool over() const { return BootClock::now() - begun_ > 800ms; }

 private:
  static Endpoint endpoint(const servers::RedisServer& server) {
    Endpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = std::to_string(server.port());
    return endpoint;
  }
  static std::string describe(const Vote& vote) {
    auto text = simulation::describe(vote);
    if (vote.said == Said::state && !vote.state.ready)
      text += std::to_string(vote.state.wait.has_value());
    return text;
  }
  Vote ask(const Message& message) {
    const auto answer = std::make_shared<std::promise<Vote>>();
    group_.send(
        0, message, {.deadline = BootClock::now() + 60s, .caller_waits = false},
        [](const std::function<void()>& send) {
          send();
          return true;
        },
        [answer](Vote vote) { answer->set_value(std::move(vote)); });
    return answer->get_future().get();
  }
  Vote serve(const Message& message) {
    using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
    const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
    return simulated_.serve(message, 0, static_cast<std::uint64_t>(now));
  }

  const TimePoint begun_ = BootClock::now();
  RedlockGroup group_;
  simulation::Node simulated_{[](std::size_t, const Owner&) { return false; }};
  std::string born_real_, born_simulated_;
};

/// Asks for one thing after the other, as the seed decides.
class NodeWalk {
 public:
  NodeWalk(BothNodes& nodes, std::uint64_t seed) : nodes_(nodes), random_(seed) {}

  void step() {
    if (known_.size() < 3 || below(6) == 0) known_.push_back(fresh());
    if (known_.size() > 6) known_.erase(known_.begin());
    auto& one = known_[below(known_.size())];
    Message message{.claim = one.claim};
    message.attempt =
        below(3) > 0 ? ++attempts_ : attempts_ - std::min<std::uint64_t>(1, attempts_);
    message.ticket = one.ticket;
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        message.kind = Kind::acquire;
        message.queue = below(3) > 0;
        message.proposed = ++proposed_;
        break;
      case 4:
      case 5:
        message.kind = Kind::confirm;
        message.hold = one.hold;
        message.fences.assign(one.claim->parts.size(), one.fence + below(3));
        break;
      case 6:
        message.kind = Kind::yield;
        if (message.ticket == 0) message.ticket = ++proposed_;
        message.queue = true;
        break;
      case 7:
        message.kind = Kind::renew;
        break;
      case 8:
        message.kind = Kind::heal;
        message.fences.assign(one.claim->parts.size(), one.fence);
        break;
      case 9:
        message.kind = Kind::undo;
        break;
      default:
        message.kind = Kind::release;
    }
    const auto vote = nodes_.both(message);
    if (vote.said == Said::granted && message.kind == Kind::acquire) {
      one.hold = vote.hold;
      one.fence = vote.numbers.front();
      if (one.claim->ttl < 1s) std::this_thread::sleep_for(100ms);  // its time is the test
    }
    if (vote.said == Said::queued && message.kind == Kind::acquire && below(2) == 0)
      one.ticket = vote.ticket;
  }

 private:
  struct Known {
    ClaimPtr claim;
    std::uint64_t ticket = 0, hold = 0, fence = 1000;
  };

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  Known fresh() {
    auto claim = std::make_shared<Claim>();
    claim->owner = {.high = random_(), .low = random_()};
    const auto mode = below(2) == 0 ? Mode::shared : Mode::exclusive;
    const std::size_t parts = below(5) == 0 ? 2 : 1;
    for (std::size_t i = 0; i < parts; ++i)
      claim->parts.push_back({.resource = i == 0 ? "a" : "b", .mode = mode});
    claim->ttl = below(40) == 0 ? 40ms : 600s;
    if (below(5) == 0) claim->priority = 1;
    Who who{.host = "walk", .pid = 1};
    if (below(3) == 0) who.identity = below(3) == 0 ? "you" : "me";
    claim->who = std::make_shared<const Who>(std::move(who));
    if (!known_.empty() && below(3) == 0) {  // the same in another mode
      const auto& before = *known_[below(known_.size())].claim;
      claim->parts = before.parts;
      for (auto& part : claim->parts) part.mode = mode;
      claim->who = before.who;
      claim->instead_of = before.owner;
    }
    return {.claim = std::move(claim)};
  }

  BothNodes& nodes_;
  std::mt19937_64 random_;
  std::vector<Known> known_;
  std::uint64_t attempts_ = 1;
  std::uint64_t proposed_ =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
};

TEST(SimulatedNode, AnswersLikeTheScripts) {
  const char* given = std::getenv("INTERLOCK_TEST_SEED");
  const auto first = given != nullptr ? std::stoull(given) : std::random_device{}();
  const auto rounds = given != nullptr ? 1U : 40U;
  const servers::RedisServer server;
  for (auto seed = first; seed < first + rounds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(seed));
    BothNodes nodes(server, "walk" + std::to_string(seed) + ":");
    NodeWalk walk(nodes, seed);
    for (int step = 0; step < 150 && !testing::Test::HasFailure() && !nodes.over(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      walk.step();
    }
  }
}

// A reader that was released came back when its upgrade, which this node had granted and nobody had confirmed, ended.
TEST(SimulatedNode, AReaderBelowItsUpgradeIsReleasedForGood) {
  const servers::RedisServer server;
  BothNodes nodes(server, "covered:");
  const auto make = [](std::uint64_t owner, Mode mode, std::uint64_t before) {
    return std::make_shared<const Claim>(Claim{.owner = {.high = 1, .low = owner},
                                               .parts = {{.resource = "a", .mode = mode}},
                                               .ttl = 600s,
                                               .who = std::make_shared<const Who>(Who{.host = "h"}),
                                               .instead_of = {.high = before, .low = before}});
  };
  const auto reader = make(1, Mode::shared, 0);
  auto upgrade = *make(2, Mode::exclusive, 0);
  upgrade.instead_of = reader->owner;
  const auto writer = std::make_shared<const Claim>(upgrade);
  EXPECT_EQ(nodes.both({.kind = Kind::acquire, .claim = reader, .attempt = 1}).said, Said::granted);
  EXPECT_EQ(nodes.both({.kind = Kind::acquire, .claim = writer, .attempt = 2}).said, Said::granted);
  EXPECT_EQ(nodes.both({.kind = Kind::release, .claim = reader}).said, Said::lost);
  EXPECT_EQ(nodes.both({.kind = Kind::release, .claim = writer}).said, Said::granted);
  const auto other = make(3, Mode::exclusive, 0);
  EXPECT_EQ(nodes.both({.kind = Kind::acquire, .claim = other, .attempt = 3}).said, Said::granted)
      << "nothing of the reader is left";
}

}  // namespace
}  // namespace interlock::redis
