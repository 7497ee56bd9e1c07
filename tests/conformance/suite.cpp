#include "conformance/suite.hpp"

namespace interlock::conformance {

std::vector<Store>& stores() {
  static std::vector<Store> all;
  return all;
}

void StoreFixture::break_hold(const std::string& resource) {
  const Client operator_(open());
  for (const auto& state : operator_.inspect({.resources = {resource}}).resources) {
    for (const auto& holder : state.holders) operator_.evict(resource, holder.owner);
  }
}

const Client& Conformance::onlooker() {
  const std::lock_guard lock(mutex_);
  if (!onlooker_) onlooker_ = std::make_unique<Client>(store_->open());
  return *onlooker_;
}

ResourceState Conformance::look(const std::string& resource) {
  auto snapshot = onlooker().inspect({.resources = {resource}});
  if (snapshot.resources.empty()) return {.resource = resource};
  EXPECT_EQ(snapshot.resources.size(), 1U);
  return std::move(snapshot.resources.front());
}

std::size_t Conformance::holders(const std::string& resource) {
  return look(resource).holders.size();
}

std::size_t Conformance::waiters(const std::string& resource) {
  return look(resource).waiters.size();
}

bool Conformance::nothing_left() { return onlooker().inspect().resources.empty(); }

Waiting Conformance::queue_up(const Acquirer& acquirer, Duration limit) {
  // It may wait for something above its resource.
  const auto before = testing_support::all_who_wait(onlooker());
  Waiting waiting(acquirer, limit);
  EXPECT_TRUE(eventually(
      [&] { return waiting.over() || testing_support::all_who_wait(onlooker()) > before; }));
  EXPECT_FALSE(waiting.over()) << "it should have had to wait for " << acquirer.resource();
  return waiting;
}

}  // namespace interlock::conformance
