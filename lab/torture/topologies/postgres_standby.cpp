// A primary and a synchronous standby, which takes over.
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/postgres_member.hpp"
#include "torture/topologies/proxies.hpp"

namespace torture {
namespace {

/// Nothing that was confirmed is lost by a promotion, as a commit waits for the standby.
class Standby final : public Topology {
 public:
  [[nodiscard]] std::string url() const override {
    return "postgres://postgres@" + first_passage_.address() + "," + second_passage_.address() +
           "/postgres?mode=lease";
  }
  [[nodiscard]] std::string direct_url() const override {
    return "postgres://postgres@" + first_.address() + "," + second_.address() +
           "/postgres?mode=lease";
  }

  std::vector<Fault> faults() override {
    const Members both{&first_member_, &second_member_};
    std::vector<Fault> list{
        killed({.name = "one killed"}, both),
        frozen({.name = "one stopped"}, both),
        restarted({.name = "one restarted"}, both),
        killed_but({.name = "both killed"}, both, 0),
        of_all({.name = "standby promoted"}, [this](Random&) { promote(); }),
    };
    append(list, session_faults([this]() -> PostgresMember& { return *primary_; }, false));
    append(list, passage_faults({&first_passage_, &second_passage_}));
    list.push_back(busy_processors());
    list.push_back(flapping(both));
    return list;
  }

 private:
  static std::vector<std::string> settings() {
    auto list = small_postgres();
    list.insert(list.end(), {"synchronous_standby_names=*", "wal_retrieve_retry_interval=200ms"});
    return list;
  }

  /// The primary is gone, the standby takes over, and a new standby takes the place of the primary.
  void promote() {
    primary_->check_answers();
    standby_->check_answers();
    if (primary_->ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1")
      throw std::runtime_error("the standby does not follow");
    primary_->awake([this] { primary_->server().stop(); });
    std::swap(primary_, standby_);
    primary_->ask("SELECT pg_promote()");
    standby_->awake([this] { standby_->server().follow(primary_->server()); });
  }

  PostgresServer first_{settings()};
  PostgresServer second_{PostgresServer::StandbyOf{first_}, settings()};
  PostgresMember first_member_{"server 0", first_};
  PostgresMember second_member_{"server 1", second_};
  PostgresMember* primary_ = &first_member_;
  PostgresMember* standby_ = &second_member_;
  Passage first_passage_{"server 0", first_.port()};
  Passage second_passage_{"server 1", second_.port()};
};

}  // namespace

Kinds standby_kinds() { return {kind<Standby>("standby")}; }

}  // namespace torture
