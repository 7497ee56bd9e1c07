// The fence counts where the data is: a holder that was stopped past its TTL wakes up and writes.
#include <fstream>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

TEST(Fenced, AStoppedHolderThatWakesUpIsRefusedByTheScript) {
  servers::RedisServer server;
  const auto script = (server.directory() / "write.lua").string();
  std::ofstream(script) << redis_fence()
                        << "if ARGV[3] then redis.call('SET', KEYS[2], ARGV[3]) end\n"
                           "return redis.call('GET', KEYS[2])\n";
  const auto eval = [&](const std::string& fence, const std::string& owner) {
    return "redis-cli -p " + std::to_string(server.port()) + " --eval " + script +
           " {report}:fence {report} , " + fence + " " + owner;
  };
  const auto as_the_holder = [&](const std::string& value) {
    return "do " + eval("$FENCE", "$OWNER") + " " + value;
  };
  const auto as_lease = [&](const Lease& lease, const std::string& value) {
    std::vector<std::string> words{"--eval",
                                   script,
                                   "{report}:fence",
                                   "{report}",
                                   ",",
                                   std::to_string(lease.fence().value),
                                   lease.owner().brief()};
    if (!value.empty()) words.push_back(value);
    return server.cli(words);
  };

  Child stopped("holder", {server.url(), "report", "1s"});
  EXPECT_GT(stopped.fence(), 0U);
  EXPECT_EQ(stopped.ask(as_the_holder("draft"), "did "), "draft ");
  EXPECT_EQ(stopped.ask(as_the_holder("draft-2"), "did "), "draft-2 ") << "the same one again";
  stopped.signal(SIGSTOP);
  const auto lease = Mutex(connect(server.url()), "report").acquire();
  EXPECT_EQ(as_lease(lease, ""), "draft-2\n") << "a read shuts the older ones out";
  stopped.tell(as_the_holder("late"));
  stopped.signal(SIGCONT);
  EXPECT_TRUE(stopped.after("did ").find("FENCED") != std::string::npos);
  EXPECT_EQ(as_lease(lease, "final"), "final\n");
  EXPECT_EQ(server.cli({"GET", "{report}"}), "final\n");
}

}  // namespace
}  // namespace interlock::redis_tests
