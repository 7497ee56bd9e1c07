#include "backends/redis/redlock_votes.hpp"

#include <algorithm>
#include <map>

#include "interlock/duration.hpp"

namespace interlock::redis {

using Said = Vote::Said;

std::string Vote::describe() const {
  switch (said) {
    case Said::nothing:
      return "not answered yet";
    case Said::granted:
      return "granted";
    case Said::queued:
    case Said::busy:
      return "held by somebody else";
    case Said::lost:
      return "not held any more";
    case Said::fresh:
      return "lost its data, and does not count " +
             (counts ? "for " + format_duration(*counts) : std::string("until it is repaired"));
    case Said::state:
      return "answered";
    case Said::failed:
      break;
  }
  return error->message();
}

std::size_t Votes::count(Said said) const {
  return static_cast<std::size_t>(std::count_if(
      votes_.begin(), votes_.end(), [said](const Vote& vote) { return vote.said == said; }));
}

std::vector<std::size_t> Votes::who(Said said) const {
  std::vector<std::size_t> found;
  for (std::size_t node = 0; node < votes_.size(); ++node) {
    if (votes_[node].said == said) found.push_back(node);
  }
  return found;
}

std::vector<std::uint64_t> Votes::fences() const {
  std::vector<std::uint64_t> fences;
  for (const auto& vote : votes_) {
    if (vote.said != Said::granted) continue;
    fences.resize(vote.numbers.size());
    for (std::size_t i = 0; i < fences.size(); ++i)
      fences[i] = std::max(fences[i], vote.numbers[i]);
  }
  return fences;
}

std::vector<Fence> Votes::agreed_fences() const {
  std::map<std::vector<std::uint64_t>, int> often;
  for (const auto& vote : votes_) {
    if (vote.said == Said::granted) ++often[vote.numbers];
  }
  std::vector<Fence> fences;
  if (often.empty()) return fences;
  const auto most = std::max_element(
      often.begin(), often.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto number : most->first) fences.push_back(Fence{number});
  return fences;
}

bool Votes::unsent() const {
  return std::all_of(votes_.begin(), votes_.end(),
                     [](const Vote& vote) { return vote.said == Said::failed && !vote.asked; });
}

std::optional<Error> refusal_of(const std::vector<Error>& refusals, std::size_t nodes) {
  if (refusals.empty() || nodes - refusals.size() > nodes / 2) return std::nullopt;
  const auto& first = refusals.front();
  for (const auto& other : refusals) {
    if (other.errc() != first.errc() || other.message() != first.message()) return std::nullopt;
  }
  return Error(first.errc(), "on the nodes of this Redlock, " + first.message(),
               {.resource = first.resource(), .node = {}, .maybe_held = false});
}

Error Votes::error(const std::string& what, const std::vector<std::string>& names) const {
  auto text = what + ": " + std::to_string(majority()) + " of " + std::to_string(size()) +
              " nodes are needed (";
  std::vector<Error> refusals;
  Error::Where where;
  for (std::size_t node = 0; node < size(); ++node) {
    const auto& vote = votes_[node];
    text += (node == 0 ? "" : "; ") + names[node] + ": " + vote.describe();
    if (vote.said == Said::granted || vote.said == Said::nothing) where.maybe_held = true;
    if (vote.said != Said::failed) continue;
    if (!vote.error->retryable()) refusals.push_back(*vote.error);
    where.maybe_held = where.maybe_held || vote.error->maybe_held();
    if (where.node.empty()) where.node = names[node];
  }
  text += ")";
  // Asking again helps unless too many have said no for good.
  if (size() - refusals.size() >= majority()) return {Errc::unreachable, text, where};
  const auto same = refusal_of(refusals, size());
  if (same) where.node.clear();
  return {refusals.front().errc(), same ? same->message() : text, where};
}

}  // namespace interlock::redis
