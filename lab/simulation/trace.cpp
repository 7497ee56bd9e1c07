#include "trace.hpp"

namespace simulation {

using interlock::redis::Message;
using interlock::redis::Vote;

std::string describe(const interlock::Claim& claim) {
  auto text = claim.owner.brief() + " on";
  for (const auto& part : claim.parts)
    text += " " + part.resource + "/" + std::string(to_string(part.mode));
  if (claim.who && !claim.who->identity.empty()) text += " as " + claim.who->identity;
  if (!claim.instead_of.empty()) text += " instead of " + claim.instead_of.brief();
  return text;
}

namespace {

std::string list(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace

std::string describe(const Message& message) {
  static const char* const kNames[] = {"acquire", "confirm", "yield", "renew", "heal",
                                       "release", "undo",    "look",  "wait",  "repair"};
  std::string text = kNames[static_cast<int>(message.kind)];
  if (message.claim) text += " " + describe(*message.claim);
  switch (message.kind) {
    case Message::Kind::acquire:
      text += message.queue ? ", may queue" : "";
      [[fallthrough]];
    case Message::Kind::yield:
      if (message.ticket != 0) text += ", ticket " + std::to_string(message.ticket);
      [[fallthrough]];
    case Message::Kind::undo:
      return text + ", attempt " + std::to_string(message.attempt);
    case Message::Kind::confirm:
      return text + ", hold " + std::to_string(message.hold) + ", fence " + list(message.fences);
    case Message::Kind::heal:
      return text + ", fence " + list(message.fences);
    case Message::Kind::wait:
    case Message::Kind::repair:
      return text + " " + std::to_string(message.number);
    default:
      return text;
  }
}

std::string describe(const Vote& vote) {
  static const char* const kNames[] = {"nothing", "granted", "queued", "busy",
                                       "lost",    "new",     "failed", "state"};
  std::string text = kNames[static_cast<int>(vote.said)];
  if (vote.said == Vote::Said::granted && !vote.numbers.empty())
    text += " hold " + std::to_string(vote.hold) + ", fence " + list(vote.numbers);
  if (vote.said == Vote::Said::queued)
    text += " behind " + std::to_string(vote.place) + ", ticket " + std::to_string(vote.ticket);
  if (vote.said == Vote::Said::state)
    text += std::string(vote.state.ready ? " ready" : " not ready") + ", counter " +
            std::to_string(vote.state.count);
  if (vote.error) text += ": " + vote.error->message();
  return text;
}

std::string describe(const interlock::Answer& answer) {
  static const char* const kNames[] = {"granted", "queued", "busy", "lost", "unknown"};
  std::string text = kNames[static_cast<int>(answer.verdict)];
  for (const auto fence : answer.fences) text += " fence " + std::to_string(fence.value);
  if (answer.verdict == interlock::Verdict::queued)
    text += " behind " + std::to_string(answer.place);
  if (answer.why) text += ": " + answer.why->message();
  return text;
}

}  // namespace simulation
