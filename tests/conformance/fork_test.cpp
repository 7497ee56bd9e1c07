// Rule 13, as far as one process can show it: a forked child holds nothing of its parent's. Kills,
// stops and orderly exits are in tests/process.
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Forking);

template <class Call>
bool refused_as_forked(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.errc() == Errc::forked;
  } catch (...) {
  }
  return false;
}

TEST_P(Forking, AChildHoldsNothingOfItsParents) {
  COVERS(Rule<13>);
  const auto locks = client();
  const Mutex mutex(locks, "r");
  auto lease = std::make_unique<Lease>(mutex.acquire());

  const auto child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {  // no assertions here: the exit code tells which check failed
    alarm(30);
    int failed = 0;
    if (lease->state() == LeaseState::held) failed |= 1;
    if (!refused_as_forked([&] { static_cast<void>(mutex.try_acquire()); })) failed |= 2;
    if (!refused_as_forked([&] { static_cast<void>(locks.inspect()); })) failed |= 4;
    try {
      if (lease->extend(60s)) failed |= 8;
    } catch (const Error&) {
    }
    lease.reset();
    _exit(failed);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);

  EXPECT_TRUE(*lease) << "the parent's, whatever the child destroyed";
  EXPECT_EQ(holders("r"), 1U);
  EXPECT_EQ(lease->release(), LeaseState::released);
}

}  // namespace
}  // namespace interlock::conformance
