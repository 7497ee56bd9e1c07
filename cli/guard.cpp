// The guardian's own side: one thread and one poll; it opens the store only if it has to.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "guardian.hpp"
#include "interlock/client.hpp"
#include "process_group.hpp"

namespace cli {

namespace {

using interlock::BootClock;
using interlock::Duration;
using interlock::TimePoint;
using std::chrono::milliseconds;

class Guard {
 public:
  Guard(Descriptor socket, const std::vector<std::string>& command, const sigset_t& original_mask)
      : socket_(std::move(socket)), command_(command), original_mask_(original_mask) {
    ::setpgid(0, 0);  // the terminal's Ctrl-C is not for us
    ::prctl(PR_SET_NAME, "interlock-guard");
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    signals_ = Descriptor(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    timer_ = Descriptor(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  }

  [[noreturn]] void run() {
    for (;;) {
      arm();
      std::array<pollfd, 3> fds{{{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = timer_.get(), .events = POLLIN, .revents = 0}}};
      if (main_gone_) fds[0].fd = -1;
      ::poll(fds.data(), fds.size(), -1);
      std::uint64_t expirations = 0;
      [[maybe_unused]] const auto got = ::read(timer_.get(), &expirations, sizeof expirations);
      if (fds[1].revents != 0) read_signals();
      if (fds[0].revents != 0) read_orders();
      step(BootClock::now());
    }
  }

 private:
  void step(TimePoint now) {
    if (group_ == 0 || reported_) {
      if (main_gone_) leave();
      return;
    }
    if (main_gone_) {
      if (reaped_ && living_members(group_) == 0) leave();
      signal_group(SIGKILL);
      return;
    }
    if (!ending_ && now >= when_.term_at) end_it(now);
    if (ending_ && now >= when_.kill_at) signal_group(SIGKILL);
    if (reaped_ && (!ending_ || living_members(group_) == 0)) {
      tell({.kind = News::Kind::ended, .value = status_, .for_the_lease = ending_});
      reported_ = true;  // and wait for the lock to be released before we end, too
    }
  }

  [[noreturn]] void leave() noexcept {
    if (!token_.empty()) {
      try {
        interlock::connect(url_).adopt(token_, false).release();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): then the TTL frees it
      }
    }
    ::_exit(0);
  }

  /// From here on there is no way back, even if a renewal comes through after all: the command has
  /// been told to end.
  void end_it(TimePoint now) {
    ending_ = true;
    when_.kill_at = std::min(when_.kill_at, now + grace_);
    if (now >= when_.kill_at) return;
    signal_group(SIGTERM);
    signal_group(SIGCONT);  // a stopped process would sleep through it
  }

  void arm() {
    const auto now = BootClock::now();
    TimePoint next{};
    if (group_ == 0 || reported_) {
      next = TimePoint{};  // nothing to wait for
    } else if (main_gone_) {
      next = now + milliseconds(2);
    } else if (ending_) {
      // Nobody tells when the last process of a group is gone.
      next = when_.kill_at > now ? std::min(when_.kill_at, now + milliseconds(10))
                                 : now + milliseconds(2);
    } else {
      next = std::max(when_.term_at, TimePoint(Duration(1)));
    }
    const auto since = next.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    itimerspec spec{};
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = (since - seconds).count();
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  void read_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const auto signal = static_cast<int>(info.ssi_signo);
      // Whoever looks a holder up finds our process id; what is sent here is meant for the command.
      if (signal == SIGUSR1 || signal == SIGUSR2 || asks_to_end(signal)) {
        tell({.kind = News::Kind::asked, .value = signal});
      }
    }
    if (group_ == 0 || reaped_) return;
    int status = 0;
    while (::waitpid(group_, &status, WNOHANG | WUNTRACED) == group_) {
      if (WIFSTOPPED(status)) {
        tell({.kind = News::Kind::stopped, .value = WSTOPSIG(status)});
        continue;
      }
      reaped_ = true;
      status_ = status;
      return;
    }
  }

  void read_orders() {
    std::array<char, kLargestPacket> packet;
    for (;;) {
      const auto got = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      Order order{};
      if (got < static_cast<ssize_t>(sizeof order)) {
        main_gone_ = true;
        return;
      }
      std::memcpy(&order, packet.data(), sizeof order);
      obey(order, packet.data() + sizeof order, packet.data() + got);
    }
  }

  void obey(const Order& order, const char* text, const char* end) {
    switch (order.kind) {
      case Order::Kind::entrust:
        url_ = text;
        token_ = text + url_.size() + 1;
        break;
      case Order::Kind::dismiss:
        token_.clear();
        break;
      case Order::Kind::start:
        follow(order);
        if (BootClock::now() < when_.kill_at) {
          start(order.foreground, text, end);
        } else {  // the order came late, and others may have the lock
          tell({.kind = News::Kind::ended, .value = 0, .for_the_lease = true});
          reported_ = true;
        }
        break;
      case Order::Kind::deadline:
        if (!ending_) follow(order);
        break;
      case Order::Kind::signal:
        signal_group(order.signal);
        break;
      case Order::Kind::lost:
        if (group_ != 0 && !ending_ && !reported_) end_it(BootClock::now());
        break;
    }
  }

  void follow(const Order& order) {
    when_ = Ending::of(order.deadline, order.ttl);
    grace_ = Ending::grace(order.ttl);
  }

  void start(bool foreground, const char* text, const char* end) {
    int errors[2];
    const pid_t parent = ::getpid();
    if (::pipe2(errors, O_CLOEXEC) != 0) {
      tell({.kind = News::Kind::not_started, .value = errno});
      return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(errors[0]);
      execute(parent, foreground, text, end);
      const int why = errno;
      [[maybe_unused]] const auto written = ::write(errors[1], &why, sizeof why);
      ::_exit(127);
    }
    int why = child < 0 ? errno : 0;
    ::close(errors[1]);
    if (child > 0) {
      ::setpgid(child, child);
      // Closed without a word when the exec has worked.
      while (::read(errors[0], &why, sizeof why) < 0 && errno == EINTR) {
      }
      if (why != 0) ::waitpid(child, nullptr, 0);
    }
    ::close(errors[0]);
    if (why != 0) {
      tell({.kind = News::Kind::not_started, .value = why});
      return;
    }
    group_ = child;
    tell({.kind = News::Kind::started, .value = group_});
  }

  /// In the child. Returns only if it can't be executed, with errno.
  void execute(pid_t parent, bool foreground, const char* text, const char* end) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    for (; text < end; text += std::strlen(text) + 1) {
      const std::string variable = text;
      const auto equals = variable.find('=');
      if (equals == std::string::npos) {
        ::unsetenv(variable.c_str());
      } else {
        ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
      }
    }
    if (foreground) ::tcsetpgrp(STDIN_FILENO, ::getpid());  // SIGTTOU is still blocked
    std::vector<char*> arguments;
    for (const auto& argument : command_) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
    ::execvp(arguments[0], arguments.data());
  }

  void signal_group(int signal) const {
    if (group_ != 0 && !reported_) ::kill(-group_, signal);
  }

  void tell(const News& news) const {
    [[maybe_unused]] const auto sent =
        ::send(socket_.get(), &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  Descriptor socket_;
  std::string url_;    ///< of the store
  std::string token_;  ///< of the lock that we are entrusted with
  const std::vector<std::string>& command_;
  sigset_t original_mask_;
  Descriptor signals_;
  Descriptor timer_;
  Ending when_{};
  Duration grace_{};
  pid_t group_ = 0;  ///< of the command, once it is started
  bool main_gone_ = false;
  bool ending_ = false;  ///< the lease ends, and so does the command
  bool reaped_ = false;  ///< the command has ended; others of its group may not have
  bool reported_ = false;
  int status_ = 0;
};

}  // namespace

void guard(Descriptor socket, const std::vector<std::string>& command,
           const sigset_t& original_mask) noexcept {
  Guard(std::move(socket), command, original_mask).run();
}

}  // namespace cli
