#include "backends/redis/redlock_debts.hpp"

#include <utility>

namespace interlock::redis {

void RedlockDebts::failed(Debt debt, TimePoint now) {
  debts_.push_back(std::move(debt));
  if (due_ == TimePoint::max()) due_ = now + kPause;
}

std::vector<RedlockDebts::Debt> RedlockDebts::done() {
  due_ = TimePoint::max();
  return std::exchange(debts_, {});
}

std::optional<RedlockDebts::Debt> RedlockDebts::due(TimePoint now) {
  if (now < due_) return std::nullopt;
  due_ = TimePoint::max();
  if (debts_.empty()) return std::nullopt;
  auto first = std::move(debts_.back());
  debts_.pop_back();
  return first;
}

}  // namespace interlock::redis
