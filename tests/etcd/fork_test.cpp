// gRPC does not survive a fork: a child of a process that has used it is refused, and its parent does not
// notice.
#include <sys/wait.h>
#include <unistd.h>

#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class Forks : public EtcdTest<servers::EtcdServer> {
 protected:
  /// Runs it in a forked child, which has half a minute. The exit code, or -1 if it was killed.
  template <class Run>
  static int in_a_child(Run run) {
    const auto child = fork();
    if (child == 0) {
      alarm(30);
      _exit(run());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// 0: refused, and the error says what to do.
  [[nodiscard]] int connect_anew() const {
    try {
      const auto locks = connect(url());
      return Mutex(locks, "child").try_acquire() ? 1 : 2;
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.errc() != Errc::forked) return 3;
      return text.find("fork before the first connection, or exec") != std::string::npos ? 0 : 4;
    }
  }
};

TEST_F(Forks, AChildThatConnectsAnewIsRefusedAndItsParentGoesOn) {
  auto locks = std::make_unique<Client>(connect(url()));
  auto lease = Mutex(*locks, "r", {.ttl = 2s}).acquire();
  EXPECT_EQ(in_a_child([&] { return connect_anew(); }), 0);
  EXPECT_EQ(in_a_child([&] { return in_a_child([&] { return connect_anew(); }); }), 0)
      << "nor can a child of the child";
  EXPECT_EQ(in_a_child([&] {
              lease = {};
              locks.reset();
              return connect_anew();
            }),
            0);
  // The parent's calls and its background thread still work.
  const auto first = lease.valid_until();
  EXPECT_TRUE(eventually([&] { return lease.valid_until() > first; })) << "it is renewed";
  EXPECT_EQ(lease.release(), LeaseState::released);
  EXPECT_TRUE(Mutex(connect(url()), "r").try_acquire());
}

// The child's destructors, and those of what gRPC keeps until the end, are quiet.
TEST_F(Forks, AnOrderlyExitOfAChildTouchesNothingOfItsParents) {
  auto parent = holder("r");
  EXPECT_GT(parent.fence(), 0U);
  for (int i = 0; i < 3; ++i) {
    parent.tell("fork");
    EXPECT_EQ(parent.after("child "), "lost");
    EXPECT_EQ(parent.after("child "), "was refused");
    EXPECT_EQ(parent.after("forked "), "0");
  }
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_EQ(parent.ask("release", "release "), "released");
}

}  // namespace
}  // namespace interlock::etcd_tests
