#include "backends/redis/redlock_release.hpp"

#include <utility>

namespace interlock::redis {

using Said = Vote::Said;
using Way = Steps::Way;

void RedlockRelease::begin(Steps& steps) const {
  for (std::size_t node = 0; node < nodes_.size(); ++node) steps.send(Way::ask, node, message());
}

void RedlockRelease::heard(std::size_t node, Vote vote, Steps& steps) {
  // Not until it is closed: nothing of this owner is to stay, whatever comes.
  if (vote.said == Said::failed) steps.send(Way::insist, node, message(), false);
  votes_.set(node, std::move(vote));
  if (over_) return;
  steps.answer = decide();
  over_ = steps.answer.has_value();
}

std::optional<Answer> RedlockRelease::decide() const {
  const auto held = votes_.count(Said::granted);
  const auto pending = votes_.count(Said::nothing);
  const auto failed = votes_.count(Said::failed);
  if (held >= votes_.majority()) return Answer{.verdict = Verdict::granted};
  if (held + pending >= votes_.majority()) return std::nullopt;
  if (votes_.size() - pending - failed < votes_.majority()) {
    if (pending > 0) return std::nullopt;
    return Answer::failed(votes_.error("no majority confirmed the release", nodes_.names));
  }
  // Perhaps held by a majority, one of which can't say so.
  if (held > 0 && held + failed + pending >= votes_.majority())
    return pending > 0 ? std::nullopt : std::optional(Answer{.verdict = Verdict::granted});
  return Answer{.verdict = votes_.count(Said::queued) > 0 ? Verdict::queued : Verdict::lost};
}

}  // namespace interlock::redis
