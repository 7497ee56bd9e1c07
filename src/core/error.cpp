#include "interlock/error.hpp"

#include <array>
#include <cstddef>
#include <new>

#include "interlock/attempt.hpp"
#include "interlock/observer.hpp"

namespace interlock {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "interlock"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::invalid:
        return "invalid";
      case Errc::busy:
        return "busy";
      case Errc::timed_out:
        return "timed out";
      case Errc::exhausted:
        return "tries exhausted";
      case Errc::cancelled:
        return "cancelled";
      case Errc::lost:
        return "lost";
      case Errc::unreachable:
        return "store unavailable";
      case Errc::refused:
        return "refused by the store";
      case Errc::corrupt:
        return "store corrupt";
      case Errc::wrong_kind:
        return "another kind of lock";
      case Errc::wrong_capacity:
        return "another capacity";
      case Errc::unsupported:
        return "not supported by this store";
      case Errc::forked:
        return "not after a fork";
      case Errc::deadlock:
        return "deadlock";
      case Errc::invalid_ttl:
        return "invalid TTL";
      case Errc::invalid_owner:
        return "invalid owner";
    }
    return "unknown";
  }
};

// "'name': message [node]"; the base class appends the kind of error.
std::string compose(const std::string& message, const Error::Where& where) {
  std::string text;
  if (!where.resource.empty()) text += "'" + where.resource + "': ";
  text += message;
  if (!where.node.empty()) text += " [" + where.node + "]";
  return text;
}

}  // namespace

const std::error_category& error_category() noexcept {
  // Never destroyed: leases that end with the process may still have errors to tell.
  alignas(Category) static std::array<std::byte, sizeof(Category)> room;
  static const auto* const category = ::new (room.data()) Category;
  return *category;
}

std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

Error::Error(Errc code, std::string message, Where where)
    : std::system_error(make_error_code(code), compose(message, where)),
      errc_(code),
      message_(std::move(message)),
      where_(std::move(where)) {}

Error Error::about(std::string resource) const {
  Where where = where_;
  where.resource = std::move(resource);
  return {errc_, message_, std::move(where)};
}

Lease& Attempt::lease() {
  if (!lease_) throw Error(*error_);
  return *lease_;
}

Lease Attempt::value() && { return std::move(lease()); }

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::granted:
      return "granted";
    case Outcome::busy:
      return "busy";
    case Outcome::timed_out:
      return "timed out";
    case Outcome::exhausted:
      return "tries exhausted";
    case Outcome::cancelled:
      return "cancelled";
    case Outcome::failed:
      return "failed";
  }
  return "?";
}

std::string_view to_string(LeaseState state) noexcept {
  switch (state) {
    case LeaseState::held:
      return "held";
    case LeaseState::lost:
      return "lost";
    case LeaseState::released:
      return "released";
  }
  return "?";
}

}  // namespace interlock
