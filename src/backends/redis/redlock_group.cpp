#include "backends/redis/redlock_group.hpp"

#include <utility>

namespace interlock::redis {

namespace {

constexpr const char* kNoPersistence =
    "the server has no append-only file: when it is started again, it starts empty or with an old "
    "state, and does not count until all leases that it may have known have ended";

}  // namespace

RedlockNode::RedlockNode(Loop& loop, const KeyNames& names, const std::string& name,
                         const Endpoint& endpoint, const Access& access, WakeSink wake,
                         const WarnSink& warn)
    : OneServer(loop,
                {.fence = "{" + names.prefix() + "}:node",
                 .channel = fresh_channel(names),
                 .in_full = true},
                name, endpoint, access, std::move(wake),
                {.scripts = RedlockScripts::all().list(), .stamps_run = true}) {
  server().on_facts([warn, name](const Server::Facts& facts) {
    auto risks = risks_of(facts, false);
    if (const auto aof = facts.find("aof_enabled"); aof != facts.end() && aof->second == "0")
      risks.emplace_back(kNoPersistence);
    warn_of(risks, name, warn);
  });
}

RedlockGroup::RedlockGroup(const std::string& prefix, const std::vector<Member>& members,
                           const std::function<void(std::size_t, const Owner&)>& wake,
                           const WarnSink& warn)
    : names_(prefix), keeper_(system_clock()) {
  for (const auto& member : members) {
    nodes_.push_back(std::make_unique<RedlockNode>(
        loop_, names_, member.name, member.endpoint, member.access,
        [wake, i = nodes_.size()](const Owner& owner) { wake(i, owner); }, warn));
  }
}

// Not Server::run: a script that the server does not know is sent again in full, and so comes after
// what was sent meanwhile. If that was a release, it must not.
void RedlockGroup::send(std::size_t node, Message message, Call how, Again again, Then then) {
  const auto& script = script_of(message.kind);
  auto words = words_of(message, names_, nodes_[node]->style());
  const auto post = [&server = nodes_[node]->server(), how,
                     stamped = message.kind == Message::Kind::acquire](std::string bytes,
                                                                       Server::Then done) {
    if (stamped) return server.send_stamped(std::move(bytes), how, std::move(done));
    server.send(std::move(bytes), how, std::move(done));
  };
  auto answer = [&name = nodes_[node]->name(), message = std::move(message),
                 then](const Outcome& outcome) { then(read_vote(message, outcome, name)); };
  auto bytes = call(script, words, false);
  post(std::move(bytes),
       [post, &script, words = std::move(words), again = std::move(again),
        answer = std::move(answer), then = std::move(then)](const Outcome& outcome) {
         if (!is_unknown_script(outcome)) return answer(outcome);
         if (again([&] { post(call(script, words, true), answer); })) return;
         then(Vote::withdrawn());
       });
}

}  // namespace interlock::redis
