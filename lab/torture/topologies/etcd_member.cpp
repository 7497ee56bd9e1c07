#include "torture/topologies/etcd_member.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace torture {

EtcdMember::EtcdMember(std::string name, EtcdServer& server)
    : Member(std::move(name), {.kill = [&server] { server.stop(); },
                               .start = [&server] { server.launch(); },
                               .signal = [&server](int number) { server.process().signal(number); },
                               .wait = [&server] { server.wait(); }}),
      server_(server) {}

std::string EtcdMember::tell(const std::vector<std::string>& words) const {
  auto answer = server_.ctl(words);
  if (answer.find("rror:") != std::string::npos ||
      answer.find("\"level\":\"warn\"") != std::string::npos)
    throw std::runtime_error(name() + " to " + words.front() + ": " + answer);
  return answer;
}

void EtcdMember::raise_no_space() const {
  const std::string body = R"({"action":"ACTIVATE","memberID":"0","alarm":"NOSPACE"})";
  const auto answer = server_.post("/v3/maintenance/alarm", body);
  if (answer.find("NOSPACE") == std::string::npos)
    throw std::runtime_error(name() + " to an alarm: " + answer);
}

void EtcdMember::lower_no_space() const { tell({"alarm", "disarm"}); }

namespace {

std::vector<std::string> leases_of(const EtcdMember& member) {
  std::istringstream lines(member.tell({"lease", "list"}));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.find(' ') == std::string::npos) found.push_back(line);
  }
  return found;
}

/// Forgets the past up to now.
void compact(const EtcdMember& member) {
  const auto text = member.tell({"endpoint", "status", "-w", "fields"});
  const std::string field = "\"Revision\" : ";
  const auto at = text.find(field);
  if (at == std::string::npos) throw std::runtime_error(member.name() + " has no revision");
  std::istringstream number(text.substr(at + field.size()));
  std::string revision;
  number >> revision;
  member.tell({"compact", revision});
}

/// The alarm outlives restarts, and takes a majority to lower: other faults may have to heal before.
Fault no_space(const EtcdMembers& members) {
  Healing healing;
  return of_all(
      {.name = "no space"},
      [members, healing](Random&) mutable {
        healing.stop();
        for (const auto* member : members) member->check_answers();
        members.front()->raise_no_space();
      },
      [members, healing]() mutable {
        healing.begin([members, i = std::size_t{0}]() mutable {
          members.at(i++ % members.size())->lower_no_space();
        });
      });
}

}  // namespace

std::vector<Fault> etcd_faults(const EtcdMembers& members) {
  const Members all(members.begin(), members.end());
  const auto told = [&](Nature nature, std::function<void(EtcdMember&, Random&)> what) {
    return one_of<EtcdMember>(
        std::move(nature), members,
        [what = std::move(what)](EtcdMember& member, Random& random) {
          member.check_answers();
          what(member, random);
        },
        [](EtcdMember&) {});
  };
  return {
      killed({.name = "killed"}, all),
      frozen({.name = "stopped"}, all),
      restarted({.name = "restarted"}, all),
      told({.name = "compaction", .disturbs = false},
           [](EtcdMember& member, Random&) { compact(member); }),
      told({.name = "defragmentation"},
           [](EtcdMember& member, Random&) { member.tell({"defrag"}); }),
      told({.name = "a lease revoked", .voids = true},
           [](EtcdMember& member, Random& random) {
             const auto leases = leases_of(member);
             if (leases.empty()) throw std::runtime_error("etcd has no lease");
             member.tell({"lease", "revoke", leases.at(random() % leases.size())});
           }),
      no_space(members),
  };
}

Promise etcd_promise() {
  // Who asks once sees the lock free when etcd's own lease has ended: ten seconds at least.
  return {.shortest_ttl = std::chrono::seconds(1), .granted_within = [](interlock::Duration ttl) {
            const interlock::Duration floor = std::chrono::seconds(10);
            return std::max(2 * ttl, floor) + std::chrono::seconds(1);
          }};
}

}  // namespace torture
