#include "signals.hpp"

#include <sys/signalfd.h>
#include <sys/wait.h>

#include <initializer_list>

namespace cli {

namespace {

// SIGTTOU and SIGTTIN among them, so that this program may hand the terminal around while it is in
// the background; nobody reads those two from the descriptor with any interest.
constexpr std::initializer_list<int> kHandled = {
    SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1, SIGUSR2, SIGALRM,
    SIGCHLD, SIGCONT, SIGTSTP, SIGWINCH, SIGTTIN, SIGTTOU,
};

// These tell of children and of the terminal, and nobody means anything by ignoring them.
bool is_needed(int signal) { return signal == SIGCHLD || signal == SIGTTIN || signal == SIGTTOU; }

// Nobody else waits for them. The guardian may be among those that are dead.
void reap_orphans() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

Signals::Signals() {
  if (is_ignored(SIGCHLD)) std::signal(SIGCHLD, SIG_DFL);  // else there is nothing to wait for
  sigset_t handled;
  sigemptyset(&handled);
  // A signal that is blocked is not ignored.
  for (const int signal : kHandled) {
    if (is_needed(signal) || !is_ignored(signal)) sigaddset(&handled, signal);
  }
  pthread_sigmask(SIG_BLOCK, &handled, &original_);
  fd_ = Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
  const auto signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD && ::getpid() == 1) reap_orphans();
  return signal;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool stop_here() {
  const auto asked_to_go_on = [] {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
  };
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // stops here
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  return asked_to_go_on();
}

}  // namespace cli
