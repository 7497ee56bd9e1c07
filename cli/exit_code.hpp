// What the program's exit status says; see sysexits.h, where most of them come from.
#pragma once

#include <csignal>

#include "interlock/error.hpp"

namespace cli {

enum ExitCode : int {
  kOk = 0,
  kNothing = 1,       ///< who, break: nobody holds it
  kFailed = 1,        ///< simulate: something held that must not
  kUsage = 64,        ///< the command line or a name makes no sense
  kUnavailable = 69,  ///< the store can't be reached, or refuses
  kSoftware = 70,     ///< something that should not happen
  kSystem = 71,       ///< the system refuses: an address is taken
  kIo = 74,           ///< stdout can't be written to
  kBusy = 75,         ///< taken, or waited as long as allowed
  kLost = 76,         ///< the lease ended before its time
  kNotExecutable = 126,
  kNotFound = 127,
};

inline int by_signal(int signal) { return 128 + signal; }

/// Which exit status an error of the library comes to.
inline int exit_code(interlock::Errc code) {
  using interlock::Errc;
  switch (code) {
    case Errc::invalid:
    case Errc::invalid_ttl:
    case Errc::invalid_owner:
    case Errc::wrong_kind:
    case Errc::wrong_capacity:
    case Errc::unsupported:
      return kUsage;
    case Errc::busy:
    case Errc::timed_out:
    case Errc::exhausted:
    case Errc::deadlock:
      return kBusy;
    case Errc::lost:
      return kLost;
    case Errc::cancelled:
      return by_signal(SIGINT);
    case Errc::unreachable:
    case Errc::refused:
    case Errc::corrupt:
      return kUnavailable;
    case Errc::forked:
      break;
  }
  return kSoftware;
}

}  // namespace cli
