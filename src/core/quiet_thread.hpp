// How every background thread of ours begins: the user's signals are for the user's threads.
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "interlock/error.hpp"

namespace interlock::core {

/// Throws Error (unreachable) if the system has no thread left.
template <class Run>
std::thread quiet_thread(Run run) {
  struct Blocked {
    Blocked() noexcept {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before{};
  };
  try {
    const Blocked signals;
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw Error(Errc::unreachable, "no thread can be started: " + error.code().message() +
                                       "; raise the limit of processes (ulimit -u)");
  }
}

}  // namespace interlock::core
