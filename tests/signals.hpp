// Signals to processes of the tests' own.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

namespace interlock::testing_support {

/// A child that is told to stop goes on until one of its threads gets to know: this waits for that.
inline void send_signal(pid_t child, int number) {
  ::kill(child, number);
  if (number != SIGSTOP) return;
  siginfo_t what{};
  if (::waitid(P_PID, static_cast<id_t>(child), &what, WSTOPPED | WEXITED | WNOWAIT) != 0) return;
  if (what.si_code == CLD_STOPPED)
    ::waitid(P_PID, static_cast<id_t>(child), &what, WSTOPPED | WNOHANG);
}

}  // namespace interlock::testing_support
