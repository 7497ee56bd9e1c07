#include "backends/redis/redlock_renewal.hpp"

#include <utility>

namespace interlock::redis {

using Said = Vote::Said;
using Kind = Message::Kind;
using Way = Steps::Way;

void RedlockRenewal::begin(Steps& steps) const {
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    steps.send(Way::ask, node, {.kind = Kind::renew, .claim = claim_});
}

void RedlockRenewal::heard(std::size_t node, Vote vote, Steps& steps) {
  votes_.set(node, std::move(vote));
  if (stage_ == Stage::confirmed) return heal(node, steps);
  if (stage_ == Stage::over) return;
  const auto confirmed = votes_.count(Said::granted);
  const auto pending = votes_.count(Said::nothing);
  const auto lost = votes_.count(Said::lost);
  if (confirmed >= votes_.majority()) return confirm(steps);
  if (confirmed + pending >= votes_.majority()) return;
  const bool is_lost = votes_.size() - lost < votes_.majority();
  if (!is_lost && pending > 0 && votes_.size() - lost - pending < votes_.majority()) return;
  stage_ = Stage::over;
  steps.answer = is_lost ? Answer{.verdict = Verdict::lost}
                         : Answer::failed(votes_.error("no majority renewed it", nodes_.names));
}

void RedlockRenewal::confirm(Steps& steps) {
  stage_ = Stage::confirmed;
  auto fences = votes_.agreed_fences();
  // Of an identity, a node may know a larger one, which another of its claims has got.
  if (claim_->who && !claim_->who->identity.empty()) {
    fences_ = votes_.fences();
  } else {
    for (const auto fence : fences) fences_.push_back(fence.value);
  }
  for (std::size_t node = 0; node < votes_.size(); ++node) heal(node, steps);
  steps.answer = Answer{.verdict = Verdict::granted, .fences = std::move(fences)};
}

void RedlockRenewal::heal(std::size_t node, Steps& steps) const {
  if (votes_[node].said != Said::lost) return;
  steps.send(Way::tell, node, {.kind = Kind::heal, .claim = claim_, .fences = fences_});
}

}  // namespace interlock::redis
