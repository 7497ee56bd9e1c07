// One Redis server, also with TLS.
#include "torture/topologies/clock.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/names.hpp"
#include "torture/topologies/proxies.hpp"
#include "torture/topologies/redis_member.hpp"

namespace torture {
namespace {

using interlock::servers::TlsRedisServer;

class OneRedis : public Topology {
 public:
  [[nodiscard]] std::string url() const override {
    return "redis://" + NameServer::name_of(passage_);
  }
  [[nodiscard]] std::vector<std::string> environment() const override {
    return names_.environment();
  }
  [[nodiscard]] std::string direct_url() const override { return server_.url(); }
  [[nodiscard]] Promise promise() const override { return {.survives_no_memory = true}; }
  std::vector<Fault> faults() override {
    auto list = redis_faults({&member_});
    append(list, unless_fences_go_back(clock_, redis_data_faults({&member_}, true)));
    append(list, clock_faults(clock_, {.voids = true}));
    append(list, passage_faults({&passage_}, {.copies_bring_back = true}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_}));
    list.push_back(names_.silent({&passage_}));
    return list;
  }

 private:
  ServerClock clock_;
  RedisServer server_{durable_redis(), "redis-server", clock_.words()};
  NameServer names_;
  RedisMember member_{"the server", server_};
  Passage passage_{"the server", server_.port()};
};

class TlsRedis : public Topology {
 public:
  [[nodiscard]] std::string url() const override { return server_.url(passage_.port()); }
  [[nodiscard]] std::vector<std::string> environment() const override {
    return names_.environment();
  }
  [[nodiscard]] std::string direct_url() const override { return server_.url(); }
  [[nodiscard]] Promise promise() const override { return {.survives_no_memory = true}; }
  std::vector<Fault> faults() override {
    auto list = redis_faults({&member_});
    append(list, redis_data_faults({&member_}, true));
    append(list, passage_faults({&passage_}, {.copies_bring_back = true}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_}));
    list.push_back(names_.silent({&passage_}));
    return list;
  }

 private:
  TlsRedisServer server_{durable_redis()};
  NameServer names_;
  RedisMember member_{"the server", server_.server()};
  Passage passage_{"the server", server_.tls_port()};
};

}  // namespace

Kinds redis_kinds() { return {kind<OneRedis>("redis"), kind<TlsRedis>("redis-tls")}; }

}  // namespace torture
