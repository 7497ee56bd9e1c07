#include "backends/redis/redlock_words.hpp"

#include <utility>

#include "backends/redis/script_texts.hpp"
#include "backends/redis/server.hpp"
#include "core/foreign.hpp"

namespace interlock::redis {

using Kind = Message::Kind;
using Said = Vote::Said;
using std::chrono::milliseconds;

const RedlockScripts& RedlockScripts::all() {
  static const auto* const scripts = [] {
    // The rules are those of a single server; only what they are part of differs.
    const auto with_claim =
        std::string("local function claim()\n") + std::string(kAcquireLua) + "\nend\n";
    return new RedlockScripts{
        .acquire = make_script({kRedlockNodeLua, kRedlockBeginLua, kRedlockAcquireSimpleLua,
                                kRowsLua, kRedlockRowsLua, with_claim, kRedlockAcquireLua}),
        .confirm = make_script({kRowsLua, kRedlockRowsLua, kRedlockConfirmLua}),
        .yield = make_script({kRowsLua, kRedlockRowsLua, kRedlockYieldLua}),
        .renew = make_script({kRowsLua, kRedlockRowsLua, kRedlockRenewLua}),
        .heal = make_script({kRowsLua, kRedlockRowsLua, kRedlockHealLua}),
        .release = make_script({"local covers = true\n", kReleaseSimpleLua, kRowsLua,
                                kRedlockRowsLua, kRedlockReleaseLua, kReleaseLua}),
        .mend = make_script({kRedlockNodeLua, kRedlockMendLua}),
    };
  }();
  return *scripts;
}

std::vector<const Script*> RedlockScripts::list() const {
  return {&acquire, &confirm, &yield, &renew, &heal, &release, &mend, &Scripts::all().inspect};
}

const Script& script_of(Kind kind) {
  const auto& scripts = RedlockScripts::all();
  switch (kind) {
    case Kind::acquire:
      return scripts.acquire;
    case Kind::confirm:
      return scripts.confirm;
    case Kind::yield:
      return scripts.yield;
    case Kind::renew:
      return scripts.renew;
    case Kind::heal:
      return scripts.heal;
    case Kind::release:
    case Kind::undo:
      return scripts.release;
    case Kind::look:
    case Kind::wait:
    case Kind::repair:
      break;
  }
  return scripts.mend;
}

namespace {

std::string join(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

Claim named(Claim claim) {
  claim.who = std::make_shared<const Who>();
  return claim;
}

Words mending_words(const Message& message, const ClaimStyle& style) {
  Words words;
  words.add("1");
  words.add(style.fence);
  words.add(message.kind == Kind::look ? "look" : message.kind == Kind::wait ? "wait" : "repair");
  if (message.kind == Kind::look) return words;
  words.add(message.born);
  words.add(std::to_string(message.number));
  return words;
}

/// What the script finds in ARGV[5].
std::string extra_of(const Message& message) {
  const auto ticket = std::to_string(message.ticket);
  auto attempt = std::to_string(message.attempt);
  switch (message.kind) {
    case Kind::acquire:
      return ticket + ":" + attempt + ":" + std::to_string(message.proposed) + ":" +
             std::string(Server::kRunDigits, '0');
    case Kind::confirm:
      return std::to_string(message.hold) + ":" + join(message.fences);
    case Kind::yield:
      return ticket + ":" + attempt;
    case Kind::heal:
      return join(message.fences);
    case Kind::undo:
      return attempt;
    default:
      return "";
  }
}

Vote state_of(std::span<redisReply* const> said) {
  Vote vote{.said = Said::state};
  vote.state = {.ready = number_of(*said[0]) == 1,
                .count = static_cast<std::uint64_t>(number_of(*said[1])),
                .holds = core::bounded<milliseconds>(number_of(*said[2])),
                .clock = static_cast<std::uint64_t>(number_of(*said[4])),
                .born = std::string(text_of(*said[5]))};
  if (const auto wait = number_of(*said[3]); wait >= 0)
    vote.state.wait = core::bounded<milliseconds>(wait);
  return vote;
}

/// The answer of a node to phase one or to a renewal.
Vote claim_vote(const Message& message, const redisReply& reply, const std::string& node) {
  Vote vote;
  const bool has_hold = message.kind == Kind::acquire;
  const auto words = elements_of(reply);
  const auto first = words.empty() ? std::string_view{} : text_of(*words[0]);
  if (first == "new" && words.size() == 2) {
    vote.said = Said::fresh;
    if (const auto wait = number_of(*words[1]); wait >= 0)
      vote.counts = core::bounded<milliseconds>(wait);
    return vote;
  }
  if (first == "granted" && words.size() == message.claim->parts.size() + (has_hold ? 2 : 1)) {
    vote.said = Said::granted;
    if (has_hold) vote.hold = static_cast<std::uint64_t>(number_of(*words[1]));
    for (const auto* word : words.subspan(has_hold ? 2 : 1))
      vote.numbers.push_back(static_cast<std::uint64_t>(number_of(*word)));
    return vote;
  }
  if (first == "queued" && words.size() == 4) {
    vote.said = Said::queued;
    vote.place = static_cast<std::uint32_t>(number_of(*words[1]));
    vote.look = core::bounded<milliseconds>(number_of(*words[2]));
    vote.ticket = static_cast<std::uint64_t>(number_of(*words[3]));
    return vote;
  }
  auto answer = acquire_answer(reply, *message.claim, node);
  if (answer.verdict == Verdict::busy) {
    vote.said = Said::busy;
  } else if (answer.verdict == Verdict::lost) {
    vote.said = Said::lost;
  } else {
    return Vote::refused(
        answer.why.value_or(Error(Errc::refused, "the server's answer makes no sense")));
  }
  return vote;
}

}  // namespace

Words words_of(const Message& message, const KeyNames& names, const ClaimStyle& style) {
  if (!message.claim) return mending_words(message, style);
  const auto& claim = *message.claim;
  if (message.kind == Kind::release) {
    return claim.who ? release_words(claim, names, style)
                     : release_words(named(claim), names, style);
  }
  const bool queue = message.queue && message.kind != Kind::undo;
  auto words = claim.who ? words_of(claim, queue, names, style)
                         : words_of(named(claim), queue, names, style);
  words.add(extra_of(message));
  return words;
}

Vote read_vote(const Message& message, const Outcome& outcome, const std::string& node) {
  if (!outcome.reply) return Vote::failed(*outcome.failure, outcome.failure->maybe_held());
  const auto& reply = *outcome.reply;
  if (is_error(reply))
    return Vote::refused(to_error(text_of(reply), node, script_of(message.kind).text));
  const auto words = elements_of(reply);
  Vote vote{.said = Said::lost};
  switch (message.kind) {
    case Kind::acquire:
    case Kind::renew:
      return claim_vote(message, reply, node);
    case Kind::confirm:
      if (words.size() == 1 && text_of(*words[0]) == "ok") vote.said = Said::granted;
      return vote;
    case Kind::release:
    case Kind::undo: {
      const auto found = release_answer(reply).verdict;
      if (found == Verdict::granted) vote.said = Said::granted;
      if (found == Verdict::queued) vote.said = Said::queued;
      return vote;
    }
    case Kind::look:
    case Kind::wait:
    case Kind::repair:
      if (words.size() == 6) return state_of(words);
      return Vote::refused({Errc::refused, "the server's answer makes no sense"});
    case Kind::yield:
    case Kind::heal:
      if (number_of(reply) == 1) vote.said = Said::granted;
      return vote;
  }
  return vote;
}

}  // namespace interlock::redis
