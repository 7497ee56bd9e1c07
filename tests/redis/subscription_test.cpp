// The connection on which a client is told of its turn.
#include "backends/redis/server.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

// A turn that comes between the answer to a client's first waiter and the subscription is published to nobody. Expected:
// who asked before the subscription was there is told when it is there, and looks again.
TEST(Subscription, TellsThoseWhoWaitedBeforeItWasThere) {
  const servers::RedisServer redis;
  servers::Proxy proxy(redis.port());
  redis::Loop loop;
  {
    redis::Server server(loop, "redis", {.host = "127.0.0.1", .port = std::to_string(proxy.port())},
                         {}, "channel", [](const Owner&) {});
    std::atomic<int> told = 0;
    proxy.stall(servers::Proxy::to_server);
    EXPECT_FALSE(server.listen([&] { ++told; }));
    EXPECT_FALSE(server.listen([&] { ++told; }));
    EXPECT_EQ(told, 0);
    proxy.flow();
    EXPECT_TRUE(eventually([&] { return told == 2; }, 20s));
    EXPECT_TRUE(server.listen([&] { ++told; })) << "nothing can have been missed";
  }
  loop.stop();
}

}  // namespace
}  // namespace interlock::redis_tests
