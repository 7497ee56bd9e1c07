// The least rights where there are several servers: what docs/redis.md adds for each topology.
#include "redis/everything.hpp"

namespace interlock::redis_tests {
namespace {

using Servers = std::vector<std::unique_ptr<servers::RedisServer>>;

/// A user with the least rights and these, but without one of them.
void allow(const Servers& list, const std::vector<std::string>& more,
           const std::string& all_but = "") {
  std::vector<std::string> words{
      "ACL",   "SETUSER",      "locker", "reset",         "on",
      ">hush", "~interlock:*", "-@all",  "~{interlock:*", "&interlock:wake:*"};
  for (const auto* rights : {&kNeeded, &kHelpful, &more}) {
    for (const auto& right : *rights) {
      if (right != all_but) words.push_back(right.starts_with('&') ? right : "+" + right);
    }
  }
  words.push_back("+" + kToList);
  for (const auto& server : list) ASSERT_EQ(server->cli(words), "OK\n");
}

std::string as_locker(const std::string& url) {
  const auto host = url.find("//") + 2;
  return url.substr(0, host) + "locker:hush@" + url.substr(host);
}

std::string failure_of(const std::string& url) {
  try {
    use_everything(connect(url), connect(url));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TopologyAccess, TheLeastRightsAreEnoughWithSentinels) {
  servers::SentinelGroup group(1);
  const auto url = as_locker(group.url()) + "?timeout=2s&min-replicas=1";
  allow(group.servers(), {"role", "wait"});
  EXPECT_EQ(failure_of(url), "");
  for (const std::string right : {"role", "wait"}) {
    allow(group.servers(), {"role", "wait"}, right);
    EXPECT_NE(failure_of(url).find("'" + right + "'"), std::string::npos) << failure_of(url);
  }
}

TEST(TopologyAccess, TheLeastRightsAreEnoughInACluster) {
  servers::RedisCluster cluster;
  const auto url = as_locker(cluster.url()) + "?timeout=2s";
  const std::vector<std::string> more{"cluster|slots", "spublish", "ssubscribe", "asking",
                                      "&{interlock:*"};
  allow(cluster.nodes(), more);
  EXPECT_EQ(failure_of(url), "");
  allow(cluster.nodes(), more, "cluster|slots");
  EXPECT_NE(failure_of(url).find("cluster|slots"), std::string::npos) << failure_of(url);
}

TEST(TopologyAccess, TheLeastRightsAreEnoughForARedlock) {
  Servers list;
  std::string hosts;
  for (int i = 0; i < 3; ++i) {
    list.push_back(std::make_unique<servers::RedisServer>());
    hosts += (hosts.empty() ? "" : ",") + list.back()->address();
  }
  const auto url = as_locker("redlock://" + hosts);
  allow(list, {"hmget", "info"});
  EXPECT_EQ(failure_of(url), "");
  allow(list, {"hmget", "info"}, "hmget");
  EXPECT_NE(failure_of(url).find("+HMGET"), std::string::npos) << failure_of(url);
}

}  // namespace
}  // namespace interlock::redis_tests
