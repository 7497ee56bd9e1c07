// What can go wrong, in one type. Expected outcomes (busy, timed out) are values, see attempt.hpp;
// an Error is thrown where there is no lease and the caller asked for one, or the store is broken.
#pragma once

#include <string>
#include <system_error>

namespace interlock {

/// The kinds of failure. Never mistaken for each other; see docs/guarantees.md.
enum class Errc {
  invalid = 1,  ///< bad input, refused before any I/O; a TTL and an owner have codes of their own
  busy,         ///< a one-shot attempt found it taken
  timed_out,    ///< waited as long as it was allowed to
  exhausted,    ///< tried as often as it was allowed to
  cancelled,    ///< the caller's stop token fired
  lost,         ///< the lease was ours and is no more
  unreachable,  ///< the store did not answer, or its answer did not arrive
  refused,      ///< the store answered, and said no: rights, a full disk, a network file system
  corrupt,      ///< the store's own data can't be read
  wrong_kind,   ///< the resource is in use as another kind of lock
  wrong_capacity,  ///< the semaphore is in use with another capacity
  unsupported,     ///< this store can't do that, see its traits
  forked,          ///< this is a forked child: the client is its parent's, or etcd was in use there
  deadlock,        ///< waiting on would never end
  invalid_ttl,     ///< a time to live that no store takes; refused before any I/O
  invalid_owner,   ///< an empty or unusable owner, owner id or identity; refused before any I/O
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(Errc code) noexcept;

/// The one exception of this library. `what()` names the lock, says what happened and what to do.
class Error : public std::system_error {
 public:
  struct Where {
    std::string resource{};   ///< the lock concerned, if one is
    std::string node{};       ///< the store or server that said so, without secrets
    bool maybe_held = false;  ///< in doubt: the store may count the lock as ours until its TTL ends
  };

  Error(Errc code, std::string message, Where where);
  Error(Errc code, std::string message) : Error(code, std::move(message), Where{}) {}

  [[nodiscard]] Errc errc() const noexcept { return errc_; }
  /// Asking again may help.
  [[nodiscard]] bool retryable() const noexcept { return errc_ == Errc::unreachable; }
  [[nodiscard]] bool maybe_held() const noexcept { return where_.maybe_held; }
  [[nodiscard]] const std::string& resource() const noexcept { return where_.resource; }
  [[nodiscard]] const std::string& node() const noexcept { return where_.node; }
  /// The message alone, without the name of the resource and the kind of error.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  /// The same error, about this resource.
  [[nodiscard]] Error about(std::string resource) const;

 private:
  Errc errc_;
  std::string message_;
  Where where_;
};

}  // namespace interlock

template <>
struct std::is_error_code_enum<interlock::Errc> : std::true_type {};
