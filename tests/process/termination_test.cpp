// SIGTERM and SIGINT, in a program whose main begins with a Termination.
#include <csignal>

#include "process/child.hpp"

namespace interlock::process {
namespace {

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

class Terminations : public ProcessTest {
 protected:
  [[nodiscard]] Child program(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{url(), "r"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Child("terminated", arguments);
  }
};

// Without one, it would be minus the signal.
TEST_F(Terminations, AProgramReturnsFromMainAndItsLockIsFree) {
  for (const int signal : {SIGTERM, SIGINT}) {
    auto holder = program();
    ASSERT_EQ(holder.line(), "held");
    holder.signal(signal);
    EXPECT_EQ(holder.wait(), 0);
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(Terminations, AWaitEndsAsCancelledAndLeavesTheLine) {
  const auto held = Mutex(locks(), "r").acquire();
  auto waiter = program();
  ASSERT_TRUE(eventually([&] { return waiters("r") == 1; }));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.line(), "cancelled");
  EXPECT_EQ(waiter.wait(), 2);
  EXPECT_EQ(waiters("r"), 0U);
}

TEST_F(Terminations, AWaitInAcquireThrowsCancelledAndLeavesTheLine) {
  const auto held = Mutex(locks(), "r").acquire();
  auto waiter = program({"throws"});
  ASSERT_TRUE(eventually([&] { return waiters("r") == 1; }));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.line(), "threw cancelled");
  EXPECT_EQ(waiter.wait(), 3);
  EXPECT_EQ(waiters("r"), 0U);
}

// timeout(1) signals the process and then its group.
TEST_F(Terminations, TwoSignalsAtOnceAreOneRequest) {
  auto holder = program();
  ASSERT_EQ(holder.line(), "held");
  holder.signal(SIGSTOP);
  holder.signal(SIGTERM);
  holder.signal(SIGINT);
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Terminations, ASecondSignalEndsAProgramThatHangs) {
  auto stuck = program({"hangs"});
  ASSERT_EQ(stuck.line(), "held");
  stuck.signal(SIGTERM);
  ASSERT_EQ(stuck.line(), "hangs");
  EXPECT_TRUE(eventually([&] {
    ::kill(stuck.pid(), SIGTERM);
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(stuck.pid()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == stuck.pid();
  }));
  EXPECT_EQ(stuck.wait(), -SIGTERM);
}

TEST_F(Terminations, AProgramThatIsStartedWithTheOriginalMaskIsEndedBySignals) {
  EXPECT_EQ(Child("terminated", {"-", "exec"}).line(), "program signal " + std::to_string(SIGTERM));
}

TEST_F(Terminations, AForkedChildEndsWithItsCopy) {
  auto parent = Child("terminated", {url(), "fork"});
  EXPECT_EQ(parent.line(), "child 7");
  ASSERT_EQ(parent.line(), "held");
  parent.signal(SIGTERM);
  EXPECT_EQ(parent.wait(), 0) << "the parent's is as it was";
}

TEST_F(Terminations, ASignalThatIsIgnoredStaysSo) {
  EXPECT_EQ(Child("terminated", {"-", "ignored"}).line(), "ignored");
}

TEST_F(Terminations, TheSignalMaskIsRestored) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(is_blocked(SIGTERM));
    const Termination termination;
    EXPECT_TRUE(is_blocked(SIGTERM));
    EXPECT_TRUE(is_blocked(SIGINT));
    EXPECT_FALSE(is_blocked(SIGHUP));
    EXPECT_EQ(sigismember(&termination.original_mask(), SIGTERM), 0);
    EXPECT_FALSE(termination.requested());
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
  EXPECT_FALSE(is_blocked(SIGINT));
}

}  // namespace
}  // namespace interlock::process
