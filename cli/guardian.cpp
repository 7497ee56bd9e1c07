#include "guardian.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "zero_ended.hpp"

namespace cli {

namespace {

// They cancel each other: of those that have not been passed on yet, the last one counts.
constexpr SignalSet kStops = signal_bit(SIGTSTP) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU);
constexpr SignalSet kGoesOn = signal_bit(SIGCONT);

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::string describe(Left left, const std::vector<Member>& members) {
  const char* what = left == Left::kept
                         ? "; the lock is kept until all of the command has ended"
                         : "; the command runs on without the lock, which others can take";
  return cannot_end(members) + what;
}

void ring(const Descriptor& socket) {
  // If it is full, there is enough for the other end to see.
  [[maybe_unused]] const auto sent = ::send(socket.get(), "!", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool still_there(const Descriptor& socket) {
  std::array<char, 256> bytes;
  for (;;) {
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    return got < 0 && errno == EAGAIN;
  }
}

void Guardian::Unmap::operator()(Board* board) const noexcept { ::munmap(board, sizeof *board); }

Guardian::Guardian(const std::vector<std::string>& command, const Signals& signals) {
  void* const shared =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");
  board_.reset(new (shared) Board);
  texts_ = Descriptor(::memfd_create("interlock", MFD_CLOEXEC));
  if (!texts_) fail("memfd_create");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    ours.reset();
    guard({.socket = std::move(theirs), .texts = std::move(texts_), .board = *board_}, command,
          signals.original_mask());
  }
  ::setpgid(pid_, pid_);  // it does so, too: whoever comes first
  socket_ = std::move(ours);
}

Guardian::~Guardian() {
  socket_.reset();
  int status = 0;
  for (;;) {
    const auto got = ::waitpid(pid_, &status, WUNTRACED);
    if (got < 0 && errno == EINTR) continue;
    if (got != pid_ || !WIFSTOPPED(status)) return;
    ::kill(pid_, SIGCONT);
  }
}

void Guardian::entrust(const std::string& url, const std::string& token, const std::string& title) {
  board_->entrusted = write({url, token, title});
  ring(socket_);
}

void Guardian::dismiss() {
  board_->dismissed = true;
  ring(socket_);
}

void Guardian::start(bool foreground, interlock::TimePoint deadline, interlock::Duration ttl,
                     const std::vector<std::string>& environment) {
  board_->foreground = foreground;
  board_->deadline = deadline;
  board_->ttl = ttl;
  board_->started = write(environment);
  ring(socket_);
}

void Guardian::move_deadline(interlock::TimePoint deadline) {
  board_->deadline = deadline;
  ring(socket_);
}

void Guardian::tell_lost() {
  board_->lost = true;
  ring(socket_);
}

void Guardian::forward(int signal) {
  const auto bit = signal_bit(signal);
  if ((bit & kGoesOn) != 0) board_->forward &= ~kStops;
  if ((bit & kStops) != 0) board_->forward &= ~kGoesOn;
  board_->forward |= bit;
  ring(socket_);
}

void Guardian::wake() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    ::kill(pid_, SIGCONT);
  }
}

std::size_t Guardian::write(const std::vector<std::string>& texts) {
  const auto all = join_zero_ended(texts);
  for (std::size_t done = 0; done < all.size();) {
    const auto wrote =
        ::pwrite(texts_.get(), all.data() + done, all.size() - done, static_cast<off_t>(written_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("can't hand the lock over to the process that guards the command");
    done += static_cast<std::size_t>(wrote);
    written_ += static_cast<std::size_t>(wrote);
  }
  return written_;
}

}  // namespace cli
