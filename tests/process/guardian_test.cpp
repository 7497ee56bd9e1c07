// When the guardian asks a command to end, and when it kills it.
#include "guardian.hpp"

#include <gtest/gtest.h>

namespace interlock::process {
namespace {

using namespace std::chrono_literals;
using cli::Ending;

TEST(Endings, ComeBeforeTheEndOfTheLease) {
  const TimePoint valid_until{1h};
  for (const Duration ttl : {Duration(300ms), Duration(3s), Duration(30s), Duration(24h)}) {
    const auto ending = Ending::of(valid_until, ttl);
    EXPECT_LE(ending.kill_at, valid_until - std::min<Duration>(ttl / 20, 250ms));
    EXPECT_LT(ending.term_at, ending.kill_at) << "a command may want to tidy up";
    EXPECT_GT(ending.term_at, valid_until - ttl / 2) << "a renewal that is late costs nothing";
  }
}

}  // namespace
}  // namespace interlock::process
