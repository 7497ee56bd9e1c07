#include "interlock/lease.hpp"

#include <utility>

#include "core/hold.hpp"

namespace interlock {

Lease::Lease() noexcept = default;
Lease::Lease(std::shared_ptr<core::Hold> hold) noexcept : hold_(std::move(hold)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    drop();
    hold_ = std::move(other.hold_);
  }
  return *this;
}

Lease::~Lease() { drop(); }

void Lease::drop() noexcept {
  if (const auto hold = std::exchange(hold_, nullptr)) hold->drop();
}

core::Hold& Lease::hold() const {
  if (!hold_)
    throw Error(Errc::invalid,
                "this Lease object holds nothing: it was moved from, or never had a lease");
  return *hold_;
}

const std::string& Lease::resource() const { return hold().resource(); }
std::vector<std::string> Lease::resources() const { return hold().resources(); }
Owner Lease::owner() const { return hold().claim().owner; }
Fence Lease::fence() const { return hold().fence(hold().resource()); }
Fence Lease::fence(std::string_view resource) const { return hold().fence(resource); }
Mode Lease::mode() const { return hold().mode(hold().resource()); }
Mode Lease::mode(std::string_view resource) const { return hold().mode(resource); }
const Traits& Lease::traits() const { return hold().traits(); }
Who Lease::who() const { return *hold().claim().who; }
std::chrono::system_clock::time_point Lease::acquired_at() const { return hold().acquired_at(); }
TimePoint Lease::valid_until() const { return hold().valid_until(); }
Duration Lease::time_remaining() const {
  return hold_ ? hold_->time_remaining() : Duration::zero();
}
Duration Lease::ttl() const { return hold().claim().ttl; }
LeaseState Lease::state() const noexcept { return hold_ ? hold_->state() : LeaseState::released; }
int Lease::attempts() const { return hold().attempts(); }
Duration Lease::waited() const { return hold().waited(); }
std::stop_token Lease::lost() const { return hold().lost(); }
std::string Lease::lost_reason() const { return hold_ ? hold_->lost_reason() : ""; }
bool Lease::extend(Duration ttl) { return hold().extend(ttl); }
LeaseState Lease::release() { return hold_ ? hold_->release() : LeaseState::released; }
void Lease::async_release(std::function<void(LeaseState)> then) {
  hold().async_release(std::move(then));
}
LeaseState Lease::release(const std::vector<std::string>& resources) {
  return hold().release(resources);
}
bool Lease::downgrade() { return hold().change(Mode::exclusive, Mode::shared, Wait::once()); }
bool Lease::try_upgrade() { return hold().change(Mode::shared, Mode::exclusive, Wait::once()); }
bool Lease::try_upgrade_for(Duration limit) {
  return hold().change(Mode::shared, Mode::exclusive, Wait::for_(limit));
}
bool Lease::tie_to(std::optional<std::int64_t> process) { return hold().tie_to(process); }
std::string Lease::token() const { return hold().token(); }
std::string Lease::detach() { return hold().detach(); }

}  // namespace interlock
