#include "interlock/termination.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "core/file_descriptor.hpp"
#include "core/process.hpp"
#include "core/quiet_thread.hpp"
#include "interlock/error.hpp"

namespace interlock {

namespace {

constexpr std::chrono::milliseconds kSameRequest{500};

// A signal that is blocked is not ignored, so what is ignored is left alone.
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
  }
  return signals;
}

FileDescriptor checked(int descriptor, const char* what) {
  if (descriptor < 0) {
    throw Error(Errc::unreachable, std::string("no ") + what +
                                       " for SIGTERM: " + std::strerror(errno) +
                                       "; raise the limit of open files (ulimit -n)");
  }
  return FileDescriptor(descriptor);
}

}  // namespace

class Termination::Watch {
 public:
  Watch(const sigset_t& signals, std::stop_source stop)
      : signals_(signals),
        stop_(std::move(stop)),
        received_(checked(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd")),
        over_(checked(::eventfd(0, EFD_CLOEXEC), "eventfd")),
        thread_(core::quiet_thread([this] { run(); })) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    const std::uint64_t one = 1;
    (void)!::write(over_.get(), &one, sizeof one);  // a new eventfd has room for it
    thread_.join();
    if (asking_.joinable()) asking_.join();
  }

 private:
  void run() {
    std::array<pollfd, 2> either{pollfd{.fd = over_.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = received_.get(), .events = POLLIN, .revents = 0}};
    while (::poll(either.data(), either.size(), -1) < 0) {
    }
    if (either[0].revents != 0) return;
    take_all();
    ask();
    pollfd over{.fd = over_.get(), .events = POLLIN, .revents = 0};
    const bool ends = ::poll(&over, 1, static_cast<int>(kSameRequest.count())) > 0;
    take_all();
    if (ends) return;
    // From now on, a signal reaches this thread and has its usual effect on the process.
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    while (::poll(&over, 1, -1) < 0) {  // a signal handler of the program may interrupt it
    }
  }

  void take_all() const {
    for (signalfd_siginfo one{}; ::read(received_.get(), &one, sizeof one) > 0;) {
    }
  }

  // On a thread of its own: a callback that hangs must not keep a second signal from ending the process.
  void ask() {
    try {
      asking_ = core::quiet_thread([this] { stop_.request_stop(); });
    } catch (const Error&) {
      stop_.request_stop();
    }
  }

  const sigset_t signals_;
  std::stop_source stop_;
  const FileDescriptor received_;
  const FileDescriptor over_;
  std::thread asking_;
  std::thread thread_;  // last: it uses the others
};

Termination::Termination() : epoch_(core::fork_epoch()) {
  const auto signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, &original_);
  try {
    watch_ = std::make_unique<Watch>(signals, stop_);
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &original_, nullptr);
    throw;
  }
}

Termination::~Termination() {
  // The threads of a forked child's copy stayed with the parent: there is nothing to join.
  if (core::fork_epoch() != epoch_) {
    (void)watch_.release();
  } else {
    watch_.reset();
  }
  pthread_sigmask(SIG_SETMASK, &original_, nullptr);
}

}  // namespace interlock
