#include "observe/words.hpp"

namespace interlock::observe {

std::string_view word(Errc code) noexcept {
  switch (code) {
    case Errc::invalid:
      return "invalid";
    case Errc::busy:
      return "busy";
    case Errc::timed_out:
      return "timed_out";
    case Errc::exhausted:
      return "exhausted";
    case Errc::cancelled:
      return "cancelled";
    case Errc::lost:
      return "lost";
    case Errc::unreachable:
      return "unreachable";
    case Errc::refused:
      return "refused";
    case Errc::corrupt:
      return "corrupt";
    case Errc::wrong_kind:
      return "wrong_kind";
    case Errc::wrong_capacity:
      return "wrong_capacity";
    case Errc::unsupported:
      return "unsupported";
    case Errc::forked:
      return "forked";
    case Errc::deadlock:
      return "deadlock";
    case Errc::invalid_ttl:
      return "invalid_ttl";
    case Errc::invalid_owner:
      return "invalid_owner";
  }
  return "?";
}

}  // namespace interlock::observe
