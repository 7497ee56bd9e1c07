#include "core/succession.hpp"

#include <algorithm>
#include <utility>

namespace interlock::core {

namespace {

Mode weaker(Mode a, Mode b) { return a == Mode::shared ? a : b; }

}  // namespace

Mode Succession::mode(const Part& part) const noexcept {
  if (phase_ == Phase::settled) return part.mode;
  return weaker(part.mode, successor_->find(part.resource)->mode);
}

void Succession::begin(Claim next, Duration at_least) {
  next.instead_of = claim_.owner;
  next.owner = fresh_();
  next.ttl = std::max(next.ttl, at_least);
  successor_ = std::move(next);
  phase_ = Phase::asking;
}

void Succession::granted() { become_claim(); }

void Succession::refused() {
  ask_for_less();
  phase_ = Phase::settled;
}

void Succession::give_up() {
  ask_for_less();
  phase_ = Phase::settling;
}

bool Succession::doubt() {
  if (phase_ == Phase::settled && successor_) phase_ = Phase::settling;
  return phase_ != Phase::settled;
}

void Succession::ask_for_less() {
  auto parts = claim_.parts;
  for (auto& part : parts) part.mode = mode(part);
  maybe_stronger_ = parts != successor_->parts;
  successor_->parts = std::move(parts);
}

Succession::Found Succession::answered(const Owner& asked, Verdict verdict) {
  if (phase_ != Phase::settling || asked != successor_->owner) return Found::nothing;
  if (verdict == Verdict::lost) return Found::lost;
  if (verdict != Verdict::granted) return Found::nothing;
  const auto ttl = successor_->ttl;
  become_claim();
  if (std::exchange(maybe_stronger_, false)) {
    begin(claim_, ttl);
    phase_ = Phase::settling;
  }
  return Found::held;
}

void Succession::become_claim() {
  successor_->ttl = claim_.ttl;
  successor_->instead_of = {};
  claim_ = std::move(*successor_);
  successor_.reset();
  phase_ = Phase::settled;
}

}  // namespace interlock::core
