// One PostgreSQL server: advisory mode, lease mode, and lease mode through PgBouncer.
#include "torture/topologies/clock.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/postgres_member.hpp"
#include "torture/topologies/proxies.hpp"

namespace torture {
namespace {

std::string postgres_url(const std::string& address) {
  return "postgres://postgres@" + address + "/postgres";
}

class Advisory final : public Topology {
 public:
  [[nodiscard]] std::string url() const override { return postgres_url(passage_.address()); }
  [[nodiscard]] std::string direct_url() const override { return server_.url(); }
  [[nodiscard]] Promise promise() const override { return {.detaches = false}; }
  std::vector<Fault> faults() override {
    auto list = postgres_faults(member_, true);
    append(list, passage_faults({&passage_}, {.cuts = true}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_}));
    return list;
  }

 private:
  PostgresServer server_{small_postgres()};
  PostgresMember member_{"the server", server_};
  Passage passage_{"the server", server_.port()};
};

class Leases final : public Topology {
 public:
  [[nodiscard]] std::string url() const override {
    return postgres_url(passage_.address()) + "?mode=lease";
  }
  [[nodiscard]] std::string direct_url() const override { return server_.url() + "?mode=lease"; }
  std::vector<Fault> faults() override {
    auto list = postgres_faults(member_, false);
    append(list, clock_faults(clock_, {.voids = true}));
    append(list, passage_faults({&passage_}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_}));
    return list;
  }

 private:
  ServerClock clock_;
  PostgresServer server_{small_postgres(), clock_.words()};
  PostgresMember member_{"the server", server_};
  Passage passage_{"the server", server_.port()};
};

class Pooled final : public Topology {
 public:
  [[nodiscard]] std::string url() const override {
    return postgres_url(passage_.address()) + "?mode=lease&listen=" + direct_.address();
  }
  [[nodiscard]] std::string direct_url() const override { return server_.url() + "?mode=lease"; }
  std::vector<Fault> faults() override {
    auto list = postgres_faults(member_, false);
    list.push_back(killed({.name = "PgBouncer killed"}, {&pool_}));
    list.push_back(restarted({.name = "PgBouncer restarted"}, {&pool_}));
    list.push_back(frozen({.name = "PgBouncer stopped"}, {&pool_}));
    append(list, passage_faults({&passage_, &direct_}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_, &pool_}));
    return list;
  }

 private:
  PostgresServer server_{small_postgres()};
  PostgresMember member_{"the server", server_};
  PgBouncer bouncer_{server_};
  Stopped stopped_;
  Member pool_{
      "PgBouncer",
      {.kill = [this] { bouncer_.stop(); },
       .start = [this] { bouncer_.start(); },
       .signal = [this](int number) { stopped_.signal(number, {bouncer_.process().pid()}); }}};
  Passage passage_{"PgBouncer", bouncer_.port()};
  Passage direct_{"the server", server_.port()};
};

}  // namespace

Kinds postgres_kinds() {
  return {kind<Advisory>("postgres"), kind<Leases>("postgres-lease"), kind<Pooled>("pgbouncer")};
}

}  // namespace torture
