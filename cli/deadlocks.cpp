// interlock deadlocks: who waits for whom in a circle.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "command.hpp"
#include "interlock/deadlock.hpp"
#include "show.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Deadlock;

// There at two looks, and so for certain between them.
std::vector<Deadlock> look_twice(const interlock::Client& client) {
  const auto before = interlock::find_deadlocks(client.inspect());
  if (before.empty()) return {};
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto found = interlock::find_deadlocks(client.inspect());
  std::erase_if(found, [&](const Deadlock& now) {
    return std::none_of(before.begin(), before.end(),
                        [&](const Deadlock& then) { return now.same_as(then); });
  });
  return found;
}

nlohmann::ordered_json to_json(const Deadlock& deadlock) {
  auto members = nlohmann::ordered_json::array();
  for (const auto& member : deadlock.members) {
    members.push_back({{"label", member.who.label},
                       {"identity", member.who.identity},
                       {"actor", member.who.actor},
                       {"host", member.who.host},
                       {"pid", member.who.pid},
                       {"waits_for", member.resource},
                       {"waited_ms", member.waited / std::chrono::milliseconds(1)},
                       {"owner", member.waiter.brief()},
                       {"behind", member.queued ? "waiter" : "holder"}});
  }
  return {{"members", std::move(members)}, {"youngest", deadlock.youngest}};
}

}  // namespace

int deadlocks(const Arguments& arguments) {
  bool json = false;
  Parser parser(
      "deadlocks [OPTIONS]",
      "Shows who waits for whom in a circle, among those that said who they are (--actor,\n"
      "--identity). Exit status 1 if there is none.",
      "  interlock deadlocks && interlock list\n");
  parser.add_json(json);
  parser.read(arguments);
  const auto client = open_store(parser.common);
  const auto found = look_twice(client);
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& deadlock : found) all.push_back(to_json(deadlock));
    print_json({{"store", client.traits().where}, {"deadlocks", std::move(all)}});
    return found.empty() ? kNothing : kOk;
  }
  for (const auto& deadlock : found) {
    const auto& members = deadlock.members;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& member = members[i];
      const auto& next = members[(i + 1) % members.size()];
      std::cout << (i == 0 ? "" : "  ") << printable(describe(member.who)) << " has waited "
                << for_people(member.waited) << " for " << printable(member.resource)
                << (member.queued ? ", behind " : ", held by ") << printable(describe(next.who))
                << '\n';
    }
  }
  if (found.empty() && ::isatty(STDOUT_FILENO) == 1)
    std::cout << "no deadlock at " << printable(client.traits().where) << '\n';
  return found.empty() ? kNothing : kOk;
}

}  // namespace cli
