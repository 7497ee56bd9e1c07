// Sentinel, Cluster and TLS: what happens when the one who serves is another one.
#include <cstdio>
#include <functional>
#include <sstream>

#include "backends/redis/socket.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

// While nobody serves, the store is unreachable, and nothing else is wrong.
bool is_renewed_in_the_end(Lease& lease) {
  return eventually([&] {
    try {
      return lease.extend(600s);
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      return false;
    }
  });
}

// The master is killed and a replica takes over. Expected: holder and waiters follow within
// seconds, whatever was replicated is still held, fences rise, and the next in line is served.
TEST(SentinelFailover, HoldersAndWaitersFollowTheNewMaster) {
  servers::SentinelGroup group(2);
  const auto locks = connect(group.url());
  const auto others = connect(group.url());
  auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  const auto fence = lease.fence();
  Waiting next(Mutex(others, "r", {.ttl = 600s}));
  auto& old = group.master();
  EXPECT_TRUE(eventually([&] {
    const auto found = locks.inspect({.resources = {"r"}}).resources;
    return found.size() == 1 && found[0].waiters.size() == 1;
  }));
  // What the replicas have not seen is lost: wait until they have.
  EXPECT_TRUE(eventually([&] { return old.is_copied_to(2); }));
  old.stop(SIGKILL);
  EXPECT_TRUE(is_renewed_in_the_end(lease));
  EXPECT_NE(&group.master(), &old);
  EXPECT_EQ(lease.state(), LeaseState::held);
  EXPECT_FALSE(next.over());
  lease.release();
  const auto second = next.lease();
  EXPECT_GT(second.fence(), fence);
}

// A grant counts only when so many replicas have it. Expected: with too few of them, it is given
// back, the error says how many there were, and nothing is left behind.
TEST(SentinelFailover, AGrantThatTooFewReplicasHaveIsGivenBack) {
  servers::SentinelGroup group(1);
  const auto locks = connect(group.url() + "?min-replicas=1");
  EXPECT_TRUE(Mutex(locks, "r").try_acquire());
  const auto strict = connect(group.url() + "?min-replicas=2");
  try {
    (void)Mutex(strict, "r", {.ttl = 200ms, .retry = Retry::none()}).try_acquire();
    ADD_FAILURE() << "there is one replica";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_NE(std::string(error.what()).find("1 of 2 replicas"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(eventually([&] { return locks.inspect().resources.empty(); }));
}

// One of the sentinels is cut off from all servers, and so does not know of a failover. Its connection
// breaks and comes back. Expected: its word counts for nothing.
TEST(SentinelFailover, ASentinelThatMissedItIsNotBelieved) {
  const std::vector<std::string> locked{"--requirepass", "hush", "--masterauth", "hush"};
  const servers::RedisServer first(locked);
  auto follows = locked;
  follows.insert(follows.end(), {"--replicaof", "127.0.0.1 " + std::to_string(first.port()),
                                 "--repl-diskless-sync-delay", "0"});
  const servers::RedisServer second(follows);
  const auto master = "sentinel monitor main 127.0.0.1 " + std::to_string(first.port());
  const servers::RedisServer knows({master + " 1", "sentinel auth-pass main hush"},
                                   "redis-sentinel");
  const servers::RedisServer missed({master + " 2"}, "redis-sentinel");  // has no password
  const auto locks =
      connect("redis+sentinel://:hush@" + knows.address() + "," + missed.address() + "/main");
  const Mutex mutex(locks, "r",
                    {.ttl = 600s, .retry = {.attempts = 200, .first = 1ms, .max = 50ms}});
  mutex.acquire().release();
  Console console(second.port());
  const auto says = [&](const std::string& line) {
    console("AUTH hush");  // connections are ended with the failover
    return console(line);
  };
  EXPECT_TRUE(eventually([&] { return knows.cli({"SENTINEL", "FAILOVER", "main"}) == "OK\n"; }));
  const auto is_there = [&] {
    const auto lease = mutex.acquire();
    return says("GET interlock:r") == lease.owner().to_string();
  };
  EXPECT_TRUE(eventually([&] { return says("ROLE").starts_with("master") && is_there(); }));
  for (int i = 0; i < 3; ++i) {
    (void)missed.cli({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_TRUE(eventually([&] {
      return missed.cli({"CLIENT", "LIST"}).find(" sub=1") != std::string::npos;
    }));
    EXPECT_TRUE(is_there());
  }
}

// The server behind a name is demoted to a replica, and the name leads to its successor. Connections to
// the old one live on. Expected: holders and waiters go over to the new one.
TEST(RedisFailover, AServerThatBecameAReplicaIsLeft) {
  const servers::RedisServer first;
  const servers::RedisServer second({"--replicaof", "127.0.0.1 " + std::to_string(first.port()),
                                     "--repl-diskless-sync-delay", "0"});
  servers::Proxy name(first.port());
  const auto url = "redis://127.0.0.1:" + std::to_string(name.port());
  const Options patient{.ttl = 600s, .retry = {.attempts = 200, .first = 1ms, .max = 50ms}};
  const auto locks = connect(url);
  auto lease = Mutex(locks, "r", patient).acquire();
  Waiting next(Mutex(connect(url), "r", patient));
  EXPECT_TRUE(eventually([&] {
    const auto found = locks.inspect({.resources = {"r"}}).resources;
    return found.size() == 1 && found[0].waiters.size() == 1;
  }));
  EXPECT_TRUE(eventually([&] { return first.is_copied_to(1); }));
  EXPECT_EQ(second.cli({"REPLICAOF", "NO", "ONE"}), "OK\n");
  name.lead_to(second.port());
  EXPECT_EQ(first.cli({"REPLICAOF", "127.0.0.1", std::to_string(second.port())}), "OK\n");
  EXPECT_TRUE(is_renewed_in_the_end(lease));
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(next.lease());
}

// The replicas are too few, or were when it was changed. Expected: a reader's lease needs them for
// nothing, an upgrade says so, and the lease is held as it was all the time.
TEST(SentinelFailover, AChangeThatTooFewReplicasHaveLeavesTheLeaseShared) {
  servers::SentinelGroup group(1);
  const auto rival = connect(group.url());
  const auto strict = connect(group.url() + "?min-replicas=2&timeout=2s");
  // As if there had been two of them, when it was taken.
  auto writer = strict.adopt(Mutex(rival, "r").acquire().detach());
  EXPECT_TRUE(writer.downgrade());
  EXPECT_EQ(writer.mode(), Mode::shared);
  EXPECT_FALSE(RwLock(rival, "r").try_write());
  EXPECT_TRUE(RwLock(rival, "r").try_read());
  try {
    (void)writer.try_upgrade();
    ADD_FAILURE() << "there is one replica";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1 of 2 replicas"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(writer);
  EXPECT_EQ(writer.mode(), Mode::shared);
  EXPECT_FALSE(RwLock(rival, "r").try_write());
  EXPECT_TRUE(RwLock(rival, "r").try_read());
  EXPECT_EQ(writer.release(), LeaseState::released);
  EXPECT_TRUE(eventually([&] { return rival.inspect().resources.empty(); }));
}

TEST(SentinelFailover, AnUnknownMasterIsAnErrorInTime) {
  servers::SentinelGroup group(1);
  const auto url = group.url();
  const auto locks = connect(url.substr(0, url.rfind('/')) + "/other?timeout=1s");
  try {
    (void)Mutex(locks, "r", {.retry = Retry::none()}).try_acquire();
    ADD_FAILURE() << "there is no such master";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such master"), std::string::npos) << error.what();
  }
}

// Two of the sentinels are not there, and one is no sentinel. Expected: the error says so of each, and
// does not take the time of a call that nobody answers.
TEST(SentinelFailover, SentinelsThatAreNoneAreNamed) {
  const servers::RedisServer server;
  const auto gone = std::to_string(servers::free_port());
  const auto locks =
      connect("redis+sentinel://127.0.0.1:" + gone + "," + server.address() + "/main?timeout=60s");
  try {
    (void)Mutex(locks, "r", {.retry = Retry::none()}).try_acquire();
    ADD_FAILURE() << "there is no sentinel";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.errc(), Errc::unreachable) << what;
    EXPECT_NE(what.find("127.0.0.1:" + gone + ": Connection refused"), std::string::npos) << what;
    EXPECT_NE(what.find(server.address() + ": the server refused"), std::string::npos) << what;
  }
}

// Several want it, and replicas are missing. Expected: each of them gives up in the end, as one alone
// would, though the store answers all the time.
TEST(SentinelFailover, WithoutReplicasNobodyWaitsForEver) {
  const servers::RedisServer server;
  const Options options{.ttl = 200ms, .retry = {.attempts = 3, .first = 10ms}};
  std::vector<Waiting> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.emplace_back(Mutex(connect(server.url() + "?min-replicas=1"), "r", options));
  for (auto& one : waiting) {
    try {
      (void)one.attempt();
      ADD_FAILURE() << "there are no replicas";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("0 of 1 replicas"), std::string::npos)
          << error.what();
    }
  }
}

class ClusterTest : public testing::Test {
 protected:
  /// The node that has this key now.
  servers::RedisServer& owner_of(const std::string& key) {
    const auto slot = cluster_.nodes()[0]->cli({"CLUSTER", "KEYSLOT", key});
    const auto number = std::stoi(slot);
    for (const auto& node : cluster_.nodes()) {
      Console console(node->port());
      // "id ip:port@bus flags …  from-to from-to"
      std::istringstream lines(console("CLUSTER NODES"));
      for (std::string line; std::getline(lines, line);) {
        if (line.find("myself,master") == std::string::npos) continue;
        std::istringstream words(line.substr(line.find("connected")));
        for (std::string range; words >> range;) {
          int from = -1;
          int to = -1;
          const auto found = std::sscanf(range.c_str(), "%d-%d", &from, &to);
          if (found == 1) to = from;
          if (found >= 1 && from <= number && number <= to) return *node;
        }
      }
    }
    throw std::runtime_error("nobody has slot " + slot);
  }
  static std::string id_of(const servers::RedisServer& node) {
    return Console(node.port())("CLUSTER MYID");
  }
  /// Moves the slot of a key, key by key, as an operator's tool does.
  void migrate(
      const std::string& key, servers::RedisServer& from, servers::RedisServer& to,
      const std::function<void()>& halfway = [] {}) {
    const auto slot = std::to_string(std::stoi(from.cli({"CLUSTER", "KEYSLOT", key})));
    Console source(from.port());
    Console target(to.port());
    ASSERT_EQ(target("CLUSTER SETSLOT " + slot + " IMPORTING " + id_of(from)), "OK");
    ASSERT_EQ(source("CLUSTER SETSLOT " + slot + " MIGRATING " + id_of(to)), "OK");
    halfway();
    for (;;) {
      const auto keys = source("CLUSTER GETKEYSINSLOT " + slot + " 100");
      if (keys.empty()) break;
      std::istringstream lines(keys);
      for (std::string name; std::getline(lines, name);) {
        ASSERT_EQ(source({"MIGRATE", "127.0.0.1", std::to_string(to.port()), name, "0", "5000"}),
                  "OK");
      }
    }
    for (const auto& node : cluster_.nodes())
      Console(node->port())("CLUSTER SETSLOT " + slot + " NODE " + id_of(to));
  }
  servers::RedisServer& another_master(const servers::RedisServer& node) {
    for (const auto& other : cluster_.nodes()) {
      if (other.get() != &node && other->cli({"ROLE"}).starts_with("master")) return *other;
    }
    throw std::runtime_error("no other master");
  }

  servers::RedisCluster cluster_;
};

// A slot is handed over, and its old node knows of it before the new one: for a while, each sends clients to
// the other. Expected: the store is unreachable for that time, and not for good.
TEST_F(ClusterTest, NodesThatSendClientsToEachOtherAreAskedAgain) {
  const auto locks = connect(cluster_.url());
  auto& from = owner_of("interlock:r");
  auto& to = another_master(from);
  const auto slot = std::to_string(std::stoi(from.cli({"CLUSTER", "KEYSLOT", "interlock:r"})));
  Console source(from.port());
  Console target(to.port());
  ASSERT_EQ(target("CLUSTER SETSLOT " + slot + " IMPORTING " + id_of(from)), "OK");
  ASSERT_EQ(source("CLUSTER SETSLOT " + slot + " NODE " + id_of(to)), "OK");
  try {
    static_cast<void>(Mutex(locks, "r", {.retry = Retry::none()}).try_acquire());
    ADD_FAILURE() << "nobody has it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
    EXPECT_TRUE(error.retryable());
  }
  Waiting waiting(Mutex(locks, "r", {.retry = {.attempts = 1000, .first = 1ms, .max = 50ms}}));
  ASSERT_EQ(target("CLUSTER SETSLOT " + slot + " NODE " + id_of(to)), "OK");
  EXPECT_EQ(waiting.lease().release(), LeaseState::released);
}

// A slot moves while its lock is held and waited for. Expected: the holder holds on, the waiter keeps
// its place, and is served by the new node.
TEST_F(ClusterTest, ASlotMovesWhileItsLockIsHeldAndWaitedFor) {
  const auto locks = connect(cluster_.url());
  const auto others = connect(cluster_.url());
  auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  Waiting next(Mutex(others, "r", {.ttl = 600s}));
  const auto waits = [&] {
    const auto found = locks.inspect({.resources = {"r"}}).resources;
    return found.size() == 1 && found[0].holders.size() == 1 && found[0].waiters.size() == 1;
  };
  EXPECT_TRUE(eventually(waits));
  auto& from = owner_of("interlock:r");
  auto& to = another_master(from);
  migrate("interlock:r", from, to);
  EXPECT_TRUE(eventually(waits));
  EXPECT_TRUE(lease.extend(600s));
  EXPECT_FALSE(next.over());
  lease.release();
  const auto second = next.lease();
  EXPECT_GT(second.fence(), lease.fence());
  EXPECT_EQ(&owner_of("interlock:r"), &to);
}

// Half of the lock's keys are here and half there. Expected: nobody gets a wrong answer; whoever asks
// is told to come again, and gets it when the slot has arrived.
TEST_F(ClusterTest, ALockWhoseKeysAreOnTheirWayIsNeverGrantedTwice) {
  const auto locks = connect(cluster_.url());
  auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  auto& from = owner_of("interlock:r");
  auto& to = another_master(from);
  migrate("interlock:r", from, to, [&] {
    const Mutex other(locks, "r", {.retry = Retry::none()});
    for (int i = 0; i < 20; ++i) {
      try {
        EXPECT_FALSE(other.try_acquire());
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::unreachable) << error.what();
      }
    }
  });
  EXPECT_FALSE(Mutex(locks, "r").try_acquire());
  EXPECT_EQ(lease.release(), LeaseState::released);
}

// A master of the cluster is killed. Expected: its replica takes over, and with it our locks.
TEST_F(ClusterTest, AMasterIsKilledAndItsReplicaTakesOver) {
  const auto locks = connect(cluster_.url());
  auto lease = Mutex(locks, "r", {.ttl = 600s}).acquire();
  auto& old = owner_of("interlock:r");
  EXPECT_TRUE(eventually([&] { return old.is_copied_to(1); }));
  old.stop(SIGKILL);
  EXPECT_TRUE(is_renewed_in_the_end(lease));
  EXPECT_EQ(lease.release(), LeaseState::released);
}

// A master is killed, its replica takes over, and later it is back as a replica. Expected: a client that has
// learned so has nothing to do with it any more.
TEST_F(ClusterTest, ANodeThatServesNothingAnyMoreIsLeftAlone) {
  // Not one of those in the URL.
  auto& old = *cluster_.nodes()[2];
  std::string name = "r";
  while (&owner_of("interlock:" + name) != &old) name += "r";
  const auto locks = connect(cluster_.url());
  {
    const auto held = Mutex(connect(cluster_.url()), name, {.ttl = 600s}).acquire();
    EXPECT_EQ(Mutex(locks, name).try_acquire_for(200ms).outcome(), Outcome::timed_out);
  }
  EXPECT_TRUE(eventually([&] { return old.is_copied_to(1); }));
  old.stop(SIGKILL);
  EXPECT_TRUE(eventually([&] {
    try {
      return static_cast<bool>(Mutex(locks, name).try_acquire());
    } catch (const Error&) {
      return false;
    }
  }));
  old.start();
  Console console(old.port());
  ASSERT_TRUE(eventually([&] { return console("PING") == "PONG"; }));
  const auto connections = [&] {
    const auto info = console("INFO stats");
    return std::stoi(info.substr(info.find("total_connections_received:") + 27));
  };
  const auto before = connections();
  const auto until = BootClock::now() + 3s;  // a subscriber tries every second
  EXPECT_TRUE(eventually([&] { return BootClock::now() > until || connections() > before; }));
  EXPECT_EQ(connections(), before);
}

// One server that is a cluster.
std::unique_ptr<servers::RedisServer> small_cluster() {
  auto server =
      std::make_unique<servers::RedisServer>(std::vector<std::string>{"--cluster-enabled", "yes"});
  EXPECT_EQ(server->cli({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK\n");
  EXPECT_TRUE(eventually([&] {
    return server->cli({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
  }));
  return server;
}

// The name in the URL leads nowhere for a while, and then to the cluster that takes the place of the first one.
// Expected: the client, which knew the nodes of the first one alone, finds it.
TEST(ClusterSeeds, LeadToTheClusterThatTookThePlaceOfAnother) {
  const auto first = small_cluster();
  const auto second = small_cluster();
  servers::Proxy name(first->port());
  const auto locks = connect("redis+cluster://127.0.0.1:" + std::to_string(name.port()));
  const Mutex mutex(locks, "r", {.ttl = 600s, .retry = Retry::none()});
  EXPECT_TRUE(mutex.try_acquire());
  name.lead_to(servers::free_port());
  name.cut();
  // It asks a node of the first one for the map.
  EXPECT_TRUE(eventually([&] {
    try {
      return locks.inspect().resources.empty();
    } catch (const Error&) {
      return false;
    }
  }));
  name.lead_to(second->port());
  first->stop(SIGKILL);
  EXPECT_TRUE(eventually([&] {
    try {
      return static_cast<bool>(mutex.try_acquire());
    } catch (const Error&) {
      return false;
    }
  }));
}

// The server hangs up again and again, while the client writes. Expected: it connects anew, and no SIGPIPE ends the program.
TEST(RedisTls, AProgramSurvivesThatTheServerHangsUp) {
  servers::TlsRedisServer server;
  servers::Proxy proxy(server.tls_port());
  const redis::Tls::Files files{.ca = server.file("ca.crt"),
                                .certificate = server.file("client.crt"),
                                .key = server.file("client.key")};
  redis::Access access;
  access.tls = std::make_shared<const redis::Tls>(files);
  redis::Socket socket({.host = "localhost", .port = std::to_string(proxy.port())}, access);
  ASSERT_TRUE(eventually([&] { return socket.connect(); }));
  proxy.cut();
  // The first write finds out that the connection is over, the one after it would get the signal.
  EXPECT_TRUE(eventually([&] {
    try {
      (void)socket.write("PING\r\n", 6);
      return false;
    } catch (const Error& error) {
      return error.errc() == Errc::unreachable;
    }
  }));
}

// Expected: a server that we can't check is not trusted, and the error says why.
TEST(RedisTls, ACertificateThatDoesNotCheckIsRefused) {
  servers::TlsRedisServer good;
  servers::TlsRedisServer stranger;
  const auto attempt = [](const std::string& url) {
    try {
      const auto locks = connect(url);
      (void)Mutex(locks, "r", {.retry = Retry::none()}).try_acquire();
      return std::string("fine");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const auto keys = "&cert=" + good.file("client.crt") + "&key=" + good.file("client.key");
  const auto port = std::to_string(good.tls_port());
  EXPECT_EQ(attempt(good.url()), "fine");
  EXPECT_EQ(attempt("rediss://127.0.0.1:" + port + "?ca=" + good.file("ca.crt") + keys), "fine");
  const auto named = "rediss://localhost:" + port + "?ca=" + good.file("ca.crt") + keys;
  for (const auto& url :
       {"rediss://localhost:" + port + "?ca=" + stranger.file("ca.crt") + keys,
        named + "&server-name=elsewhere.example", named + "&server-name=192.0.2.1"}) {
    EXPECT_NE(attempt(url).find("certificate does not check"), std::string::npos) << attempt(url);
  }
  // Without a certificate of ours, the server hangs up.
  EXPECT_NE(attempt("rediss://localhost:" + port + "?timeout=1s&ca=" + good.file("ca.crt")),
            "fine");
  // No TLS where TLS is spoken, and the other way round.
  EXPECT_NE(attempt("redis://127.0.0.1:" + port + "?timeout=1s"), "fine");
  EXPECT_NE(attempt("rediss://127.0.0.1:" + std::to_string(good.server().port()) +
                    "?timeout=1s&ca=" + good.file("ca.crt")),
            "fine");
}

}  // namespace
}  // namespace interlock::redis_tests
