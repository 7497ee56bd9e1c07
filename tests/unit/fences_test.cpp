// Where fences come from in stores without a server.
#include <gtest/gtest.h>

#include "backends/file/shard.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;

namespace {

// A program that is started again has a new store.
TEST(MemoryFences, RiseFromOneRunOfAProgramToTheNext) {
  const auto first = Mutex(Client(memory_store()), "r").acquire().fence();
  EXPECT_GT(Mutex(Client(memory_store()), "r").acquire().fence(), first);
}

TEST(FileFences, RiseThoughTheClockIsBehindThem) {
  const auto later = file::next_fence(0) + 1'000'000'000;  // a quarter of an hour
  EXPECT_GT(file::next_fence(later), later);
}

TEST(FileFences, AreNotBehindTheClockThoughTheLastOneIsForgotten) {
  const auto first = file::next_fence(0);
  EXPECT_GE(file::next_fence(0), first);
  EXPECT_GT(first, 1'000'000'000'000'000U);  // in microseconds, since 1970
}

}  // namespace
