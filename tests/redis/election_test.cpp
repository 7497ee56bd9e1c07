// A leader whose store goes down stops in time, and leads again when the store is back.
#include <mutex>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

TEST(Election, ALeaderOutlivesAStoreThatGoesDownAndComesBackEmpty) {
  servers::RedisServer server;
  std::mutex mutex;
  std::vector<std::string> said;
  const auto say = [&](std::string what) {
    const std::lock_guard lock(mutex);
    said.push_back(std::move(what));
  };
  const auto heard = [&](const std::vector<std::string>& all) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return said == all;
    });
  };
  LeaderElection election(connect(server.url()), "orders",
                          {.ttl = 2s,
                           .on_gain = [&](Fence) { say("gain"); },
                           .on_loss = [&](const std::string&) { say("loss"); },
                           .look_every = 20ms});
  election.observe([&](const std::optional<Leader>& leader) {
    if (!leader) say("nobody");
  });
  ASSERT_TRUE(heard({"nobody"}));
  election.start();
  ASSERT_TRUE(heard({"nobody", "gain"}));
  const auto term = election.term().value();
  server.stop();
  ASSERT_TRUE(heard({"nobody", "gain", "loss"})) << "and nobody knows who leads now";
  EXPECT_FALSE(election.is_leader());
  EXPECT_THROW((void)election.leader(), Error);
  EXPECT_FALSE(election.try_lead()) << "it is in line already";
  server.start();
  ASSERT_TRUE(eventually([&] { return election.is_leader(); }));
  EXPECT_GT(election.term().value(), term) << "though the server has forgotten all";
}

}  // namespace
}  // namespace interlock::redis_tests
