// interlock deadlocks: who waits for whom in a circle.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>
#include <utility>

#include "command.hpp"
#include "interlock/deadlock.hpp"
#include "show.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Deadlock;

// There at two looks, and so for certain between them.
std::vector<Deadlock> look_twice(StoreView& store) {
  const auto before = interlock::find_deadlocks(store.inspect());
  if (before.empty()) return {};
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  auto found = interlock::find_deadlocks(store.inspect());
  std::erase_if(found, [&](const Deadlock& now) {
    return std::none_of(before.begin(), before.end(),
                        [&](const Deadlock& then) { return now.same_as(then); });
  });
  return found;
}

// "host:123 (label) as actor".
std::string with_actor(const interlock::Who& who) { return describe(who) + " as " + who.actor; }

nlohmann::ordered_json to_json(const interlock::Who& who, const interlock::Owner& owner) {
  return {{"pid", who.pid},           {"who", label_or_process(who)},
          {"identity", who.identity}, {"actor", who.actor},
          {"host", who.host},         {"owner", owner.brief()}};
}

nlohmann::ordered_json to_json(const Deadlock& deadlock) {
  auto members = nlohmann::ordered_json::array();
  for (const auto& member : deadlock.members) {
    auto json = to_json(member.who, member.waiter);
    json["waits_for"] = member.resource;
    json["waited_ms"] = member.waited / std::chrono::milliseconds(1);
    json["behind"] = member.queued ? "waiter" : "holder";
    json["blocked_by"] = to_json(member.blocked_by, member.blocker);
    members.push_back(std::move(json));
  }
  return {{"members", std::move(members)}, {"youngest", deadlock.youngest}};
}

}  // namespace

int deadlocks(const Arguments& arguments) {
  bool json = false;
  Parser parser(
      "deadlocks [OPTIONS]",
      "Shows deadlocks: workers that hold locks and wait for each other's. Only workers that\n"
      "have a name are seen: by --actor, and in programs also by thread and identity. Exit\n"
      "status 1 if there is no deadlock.",
      "  interlock deadlocks && interlock list\n");
  parser.add_json(json);
  parser.read(arguments);
  StoreView store(parser.common);
  const auto found = look_twice(store);
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& deadlock : found) all.push_back(to_json(deadlock));
    print_json({{"store", store.traits().where}, {"deadlocks", std::move(all)}});
    return found.empty() ? kNothing : kOk;
  }
  for (const auto& deadlock : found) {
    bool first = true;
    for (const auto& member : deadlock.members) {
      std::cout << (std::exchange(first, false) ? "" : "  ") << printable(with_actor(member.who))
                << " has waited " << for_people(member.waited) << " for "
                << printable(member.resource) << (member.queued ? ", behind " : ", held by ")
                << printable(with_actor(member.blocked_by)) << '\n';
    }
  }
  if (found.empty() && ::isatty(STDOUT_FILENO) == 1)
    std::cout << "no deadlock at " << printable(store.traits().where) << '\n';
  return found.empty() ? kNothing : kOk;
}

}  // namespace cli
