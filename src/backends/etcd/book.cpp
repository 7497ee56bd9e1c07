#include "backends/etcd/book.hpp"

namespace interlock::etcd {

namespace {

template <class Map>
auto find(Map& map, const Owner& owner) {
  const auto it = map.find(owner);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

Book::CallOf Book::begin_call(const Owner& owner) {
  const auto number = ++calls_begun_;
  calls_[owner] = number;
  const auto end = [this, owner, number](void*) {
    const std::lock_guard lock(mutex_);
    const auto it = calls_.find(owner);
    if (it != calls_.end() && it->second == number) calls_.erase(it);
  };
  return {owner, number, std::shared_ptr<void>(this, end)};
}

std::pair<Book::CallOf, bool> Book::begin(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  const bool another = calls_.contains(owner);
  return {begin_call(owner), another};
}

bool Book::is_last(const CallOf& call) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(calls_, call.owner);
  return found != nullptr && *found == call.number;
}

void Book::put(Hold hold) {
  const std::lock_guard lock(mutex_);
  const auto owner = hold.claim.owner;
  waits_.erase(owner);
  // It takes over once: what has that name later is another hold.
  if (!hold.claim.instead_of.empty() && !holds_.contains(owner))
    holds_.erase(hold.claim.instead_of);
  holds_[owner] = std::move(hold);
}

void Book::put(Wait wait) {
  const std::lock_guard lock(mutex_);
  waits_[wait.claim.owner] = std::move(wait);
}

std::optional<Hold> Book::hold(const Owner& owner) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(holds_, owner);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool Book::knows(const Owner& owner) const {
  const std::lock_guard lock(mutex_);
  return holds_.contains(owner) || waits_.contains(owner) || doubts_.contains(owner);
}

std::optional<Wait> Book::wait(const Owner& owner, TimePoint now) {
  const std::lock_guard lock(mutex_);
  auto* found = find(waits_, owner);
  if (found == nullptr) return std::nullopt;
  found->asked = now;
  return *found;
}

void Book::erase(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  waits_.erase(owner);
  holds_.erase(owner);
  if (auto* found = find(doubts_, owner)) found->look_again = {};
}

void Book::doubt(const Claim& claim, TimePoint look_again) {
  const std::lock_guard lock(mutex_);
  doubts_[claim.owner] = {claim, look_again};
}

bool Book::take_doubt(const Owner& owner) {
  const std::lock_guard lock(mutex_);
  return doubts_.erase(owner) > 0;
}

std::vector<Owner> Book::on_lease(std::int64_t lease) const {
  const std::lock_guard lock(mutex_);
  std::vector<Owner> owners;
  for (const auto& [owner, hold] : holds_) {
    if (hold.lease == lease) owners.push_back(owner);
  }
  return owners;
}

Book::Due Book::due(TimePoint now, Duration silence) {
  const std::lock_guard lock(mutex_);
  Due due;
  std::erase_if(holds_, [&](auto& item) {
    const bool over = item.second.expires < now;
    if (over) due.holds.push_back(std::move(item.second));
    return over;
  });
  std::erase_if(waits_, [&](auto& item) {
    const bool silent = item.second.asked + silence < now && !calls_.contains(item.first);
    if (silent) due.silent.push_back({std::move(item.second.claim), begin_call(item.first)});
    return silent;
  });
  std::erase_if(doubts_, [&](auto& item) {
    // One that is known to be there is looked after as such.
    const bool over = item.second.look_again < now && !waits_.contains(item.first) &&
                      !holds_.contains(item.first) && !calls_.contains(item.first);
    if (over) due.in_doubt.push_back({std::move(item.second.claim), begin_call(item.first)});
    return over;
  });
  return due;
}

}  // namespace interlock::etcd
