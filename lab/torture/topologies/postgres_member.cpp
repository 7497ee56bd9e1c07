#include "torture/topologies/postgres_member.hpp"

#include <csignal>
#include <list>

namespace torture {

namespace {

/// Sessions that hold something, to be given back by ending them.
class Hoard {
 public:
  bool open(const std::string& url) {
    held_.emplace_back(PQconnectdb((url + "?sslmode=disable&connect_timeout=5").c_str()), PQfinish);
    if (PQstatus(held_.back().get()) == CONNECTION_OK) return true;
    held_.pop_back();
    return false;
  }
  void run(const char* sql) { PQclear(PQexec(held_.back().get(), sql)); }
  void give_back() { held_.clear(); }

 private:
  std::list<std::unique_ptr<PGconn, decltype(&PQfinish)>> held_;
};

}  // namespace

void Stopped::signal(int number, const std::vector<pid_t>& processes) {
  if (number != SIGSTOP) return until_.reset();
  if (processes.empty()) return;
  std::string command = "kill -CONT";
  for (const auto process : processes) command += " " + std::to_string(process);
  until_ = std::make_unique<LastWill>(command + " 2>/dev/null");
  for (const auto process : processes) ::kill(process, SIGSTOP);
}

PostgresMember::PostgresMember(std::string name, PostgresServer& server)
    : Member(std::move(name),
             {.kill = [&server] { server.stop(); },
              .start = [&server] { server.start(); },
              .signal = [&server, stopped = std::make_shared<Stopped>()](
                            int number) { stopped->signal(number, server.processes()); }}),
      server_(server) {}

std::string PostgresMember::ask(const std::string& sql) const {
  check_answers();
  auto answer = server_.console()(sql);
  if (answer.starts_with("(")) throw std::runtime_error(name() + " to " + sql + ": " + answer);
  return answer;
}

std::vector<std::string> small_postgres() {
  return {"max_locks_per_transaction=10", "max_prepared_transactions=0"};
}

std::vector<Fault> session_faults(const std::function<PostgresMember&()>& member, bool sessions) {
  const std::string end =
      "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE"
      " backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random()";
  const auto told = [member](std::string name, bool voids, const std::string& sql) {
    return of_all({.name = std::move(name), .voids = voids},
                  [member, sql](Random&) { member().ask(sql); });
  };
  return {told("all sessions ended", sessions, end + ") AS s"),
          told("a session ended", sessions, end + " LIMIT 1) AS s")};
}

std::vector<Fault> postgres_faults(PostgresMember& member, bool sessions) {
  auto& server = member.server();
  const auto stopped_by = [&](std::string name, int signal) {
    return of_all({.name = std::move(name), .voids = sessions}, [&member, signal](Random&) {
      member.check_answers();
      member.awake([&] {
        member.server().stop(signal);
        member.server().start();
      });
    });
  };
  auto locks = std::make_shared<Hoard>();
  auto connections = std::make_shared<Hoard>();
  std::vector<Fault> list{
      killed({.name = "killed", .voids = sessions}, {&member}),
      frozen({.name = "stopped"}, {&member}),
      stopped_by("restarted", SIGINT),
      stopped_by("immediate stop", SIGQUIT),
      of_all(
          {.name = "lock table exhausted"},
          [locks, &member, &server](Random&) {
            member.check_answers();
            if (locks->open(server.url()))
              locks->run(
                  "SELECT count(pg_advisory_lock(7, i)) FROM generate_series(1, 1000000) AS i");
          },
          [locks] { locks->give_back(); }),
      of_all(
          {.name = "connections exhausted"},
          [connections, &member, &server](Random&) {
            constexpr int kMost = 200;
            member.check_answers();
            for (int i = 0; i < kMost && connections->open(server.url()); ++i) {
            }
          },
          [connections] { connections->give_back(); }),
  };
  append(list, session_faults([&member]() -> PostgresMember& { return member; }, sessions));
  return list;
}

}  // namespace torture
