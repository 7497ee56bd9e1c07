// The guardian's side: one loop around poll(). If the guardian has to use the store, a second thread does so.
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
#include <memory>

#include "command.hpp"
#include "guardian.hpp"
#include "process_group.hpp"
#include "standby.hpp"
#include "terminal.hpp"
#include "zero_ended.hpp"

namespace cli {

namespace {

using interlock::BootClock;
using interlock::Duration;
using interlock::TimePoint;
using std::chrono::milliseconds;

// How often to look for processes that can't be ended: nobody tells when they are gone.
constexpr auto kLook = milliseconds(250);

class Guard {
 public:
  Guard(Ward ward, const std::vector<std::string>& command, const sigset_t& original_mask)
      : socket_(std::move(ward.socket)),
        texts_(std::move(ward.texts)),
        board_(ward.board),
        command_(command),
        original_mask_(original_mask) {
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
      if (!main_gone_) {
        // In this order: what the board says was written before the end of the socket.
        main_gone_ = !still_there(socket_);
        read_board();
      }
      step(BootClock::now());
    }
  }

 private:
  void step(TimePoint now) {
    if (group_ == 0 || reported_) {
      if (main_gone_) leave();
      return;
    }
    if (!main_gone_ && !ending_ && now >= when_.term_at) end_it(now);
    if (!main_gone_ && !ending_) {
      if (reaped_) report();
      return;
    }
    const bool killing = main_gone_ || now >= when_.kill_at;
    if (killing) signal_group(SIGKILL);
    members_.look(group_);
    if (killing) keep_lock(now);
    if (!reaped_ || !members_.ended()) return;
    if (!killing && !members_.vanished()) {
      // A process that was overlooked does not outlive this: no fork gets past a SIGKILL to the group.
      when_.kill_at = now;
      members_.forget();
      return;
    }
    if (main_gone_) leave();
    standby_.reset();
    report();
  }

  /// SIGKILL has been sent. If processes of the command can't be ended, the lock is kept until they are
  /// gone, as long as the store lets us.
  void keep_lock(TimePoint now) {
    stuck_ = any_out_of_reach(members_.living());
    const bool renewed = !main_gone_ && !board_.lost && ending().kill_at > now;
    if (!standby_ && (main_gone_ || (stuck_ && !renewed)) && !token_.empty()) {
      standby_ = std::make_unique<Standby>(url_, token_);
    }
    if (!stuck_ || board_.left == Left::lost) return;
    auto left = board_.left.load();
    const auto state = standby_ ? standby_->state() : Standby::State::asking;
    if (renewed || state == Standby::State::held) {
      left = Left::kept;
    } else if (state == Standby::State::lost || now >= board_.deadline.load()) {
      left = Left::lost;
    }
    if (left == board_.left) return;
    board_.left = left;
    ring(socket_);
    if (main_gone_) say(left);
  }

  /// On stderr, as there is nobody else to do it.
  void say(Left left) const {
    complain(title_ + ": interlock run was killed; " + describe(left, members_.living()));
  }

  [[noreturn]] void leave() noexcept {
    if (!standby_ && !token_.empty()) standby_ = std::make_unique<Standby>(url_, token_);
    standby_.reset();  // if the store does not answer, the TTL frees the lock
    ::_exit(0);
  }

  void report() {
    board_.for_the_lease = ending_;
    board_.status = status_;
    board_.ended = true;
    reported_ = true;  // and wait for the lock to be released before we end, too
    ring(socket_);
  }

  /// From here on there is no way back, even if a renewal comes through after all: the command has
  /// been told to end.
  void end_it(TimePoint now) {
    ending_ = true;
    when_.kill_at = std::min(when_.kill_at, now + Ending::grace(board_.ttl));
    if (now >= when_.kill_at) return;
    signal_group(SIGTERM);
    signal_group(SIGCONT);  // a stopped process would sleep through it
  }

  void arm() {
    const auto now = BootClock::now();
    const auto again = now + (stuck_ ? kLook : milliseconds(2));
    TimePoint next{};
    if (group_ == 0 || reported_) {
      next = TimePoint{};  // nothing to wait for
    } else if (main_gone_) {
      next = again;
    } else if (ending_) {
      // Nobody tells when the last process of a group is gone.
      next = when_.kill_at > now ? std::min(when_.kill_at, now + milliseconds(10)) : again;
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
      const bool meant = signal == SIGUSR1 || signal == SIGUSR2 || asks_to_end(signal);
      if (meant && !is_ignored(signal)) {
        board_.asked |= signal_bit(signal);
        ring(socket_);
      }
    }
    if (group_ == 0 || reaped_) return;
    int status = 0;
    while (::waitpid(group_, &status, WNOHANG | WUNTRACED) == group_) {
      if (WIFSTOPPED(status)) {
        board_.stopped = WSTOPSIG(status);
        ring(socket_);
        continue;
      }
      reaped_ = true;
      status_ = status;
      return;
    }
  }

  void read_board() {
    // Read in the opposite order of writing: what was written before is there, too.
    const auto end = board_.started.load();
    if (const auto first = board_.entrusted.load(); read_ < first) entrust(first);
    if (board_.dismissed) token_.clear();
    if (!started_ && end != 0) {
      started_ = true;
      when_ = ending();
      if (BootClock::now() < when_.kill_at) {
        start(read_texts(end));
      } else {  // the order came late, and others may have the lock
        ending_ = true;
        report();
      }
    }
    if (!ending_) when_ = ending();
    if (board_.lost && group_ != 0 && !ending_ && !reported_) end_it(BootClock::now());
    if (!started_) return;
    while (const auto signal = take_signal(board_.forward)) {
      const bool sent = signal_group(*signal);
      // A stopped process would sleep through it.
      if (asks_to_end(*signal)) signal_group(SIGCONT);
      if (!sent) {
        board_.refused |= signal_bit(*signal);
        ring(socket_);
      }
    }
  }

  [[nodiscard]] Ending ending() const { return Ending::of(board_.deadline, board_.ttl); }

  void entrust(std::size_t end) {
    const auto texts = read_texts(end);
    if (texts.size() != 3) return;
    url_ = texts[0];
    token_ = texts[1];
    title_ = texts[2];
  }

  /// What has come since the last time, up to there.
  std::vector<std::string> read_texts(std::size_t end) {
    std::string all(end - read_, '\0');
    for (std::size_t done = 0; done < all.size();) {
      const auto got = ::pread(texts_.get(), all.data() + done, all.size() - done,
                               static_cast<off_t>(read_ + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    read_ = end;
    return split_zero_ended(all);
  }

  void cannot_start(int why) {
    board_.error = why;
    reported_ = true;
    ring(socket_);
  }

  void start(const std::vector<std::string>& environment) {
    int errors[2];
    const pid_t parent = ::getpid();
    if (::pipe2(errors, O_CLOEXEC) != 0) return cannot_start(errno);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(errors[0]);
      execute(parent, environment);
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
    if (why != 0) return cannot_start(why);
    group_ = child;
    ring(socket_);
  }

  /// In the child. Returns only if it can't be executed, with errno.
  void execute(pid_t parent, const std::vector<std::string>& environment) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    for (const auto& variable : environment) {
      const auto equals = variable.find('=');
      if (equals == std::string::npos) {
        ::unsetenv(variable.c_str());
      } else {
        ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
      }
    }
    if (board_.foreground) {  // SIGTTOU is still blocked
      ::tcsetpgrp(open_terminal().get(), ::getpid());
    }
    std::vector<char*> arguments;
    for (const auto& argument : command_) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    // Before the exec: a command that becomes another user's outlives us.
    board_.group = ::getpid();
    ::sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
    ::execvp(arguments[0], arguments.data());
  }

  /// False: there are processes in it, and none that we may signal.
  bool signal_group(int signal) const {
    return group_ == 0 || reported_ || ::kill(-group_, signal) == 0 || errno != EPERM;
  }

  Descriptor socket_;
  Descriptor texts_;
  Board& board_;
  std::size_t read_ = 0;  ///< of the texts
  std::string url_;       ///< of the store
  std::string token_;     ///< of the lock that we are entrusted with
  std::string title_;     ///< of the lock, for people
  const std::vector<std::string>& command_;
  sigset_t original_mask_;
  Descriptor signals_;
  Descriptor timer_;
  Ending when_{};
  pid_t group_ = 0;  ///< of the command, once it is started
  GroupEnd members_;
  std::unique_ptr<Standby> standby_;
  bool started_ = false;
  bool main_gone_ = false;
  bool ending_ = false;  ///< the lease ends, and so does the command
  bool stuck_ = false;   ///< the command, or a part of it, can't be ended
  bool reaped_ = false;  ///< the command has ended; others of its group may not have
  bool reported_ = false;
  int status_ = 0;
};

}  // namespace

void guard(Ward ward, const std::vector<std::string>& command,
           const sigset_t& original_mask) noexcept {
  Guard(std::move(ward), command, original_mask).run();
}

}  // namespace cli
