#include "signals.hpp"

#include <sys/signalfd.h>

#include <initializer_list>

namespace cli {

namespace {

// SIGTTOU and SIGTTIN among them, so that this program may hand the terminal around while it is in
// the background; nobody reads those two from the descriptor with any interest.
constexpr std::initializer_list<int> kHandled = {
    SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1, SIGUSR2, SIGALRM,
    SIGCHLD, SIGCONT, SIGTSTP, SIGWINCH, SIGTTIN, SIGTTOU,
};

}  // namespace

Signals::Signals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : kHandled) sigaddset(&handled, signal);
  pthread_sigmask(SIG_BLOCK, &handled, &original_);
  fd_ = Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
  return static_cast<int>(info.ssi_signo);
}

void stop_here() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // stops here
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace cli
