// The witness of interlock simulate: it must see what must not be, or its silence means nothing.
#include "simulate/register.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace cli::simulation {
namespace {

using interlock::BootClock;
using interlock::Owner;
using namespace std::chrono_literals;

/// A lease that says what it is told to.
struct Lease {
  Owner owner = Owner::random();
  bool valid = true;
  interlock::TimePoint until = BootClock::now() + 1h;

  [[nodiscard]] Standing standing() const {
    return {
        .owner = owner, .valid = [this] { return valid; }, .valid_until = [this] { return until; }};
  }
  /// Its deadline was long ago.
  void end() {
    valid = false;
    until = BootClock::now() - 1h;
  }
};

struct SimulateRegister : testing::Test {
  SimulateRegister() { Register::prepare(*ledger); }

  static Entrance alone(std::uint32_t resource, std::uint64_t fence) {
    return {.resource = resource, .exclusive = true, .fence = fence};
  }
  static Entrance shared(std::uint32_t resource) {
    return {.resource = resource, .exclusive = false, .fence = {}};
  }

  std::unique_ptr<Ledger> ledger = std::make_unique<Ledger>();
  std::vector<Marks> workers = std::vector<Marks>(4);
  std::vector<Guarded> resources = std::vector<Guarded>(3);
  Register rows{*ledger, workers, resources, false};
  Register table{*ledger, workers, resources, true};
  Lease a, b;
};

TEST_F(SimulateRegister, OneAfterTheOtherIsInOrder) {
  for (std::uint64_t fence = 1; fence < 5; ++fence) {
    const Lease lease;
    EXPECT_TRUE(rows.enter(fence % 2, {alone(0, fence), alone(1, fence)}, lease.standing()));
    rows.leave(fence % 2, 1, lease.standing());
    rows.leave(fence % 2, 0, lease.standing());
  }
  EXPECT_TRUE(rows.in_order());
  EXPECT_EQ(ledger->writes, 8U);
  EXPECT_EQ(resources[0].number, 4U);
}

TEST_F(SimulateRegister, TwoValidLeasesAtOnceAreAnOverlap) {
  rows.enter(0, {alone(0, 1)}, a.standing());
  rows.enter(1, {alone(0, 2)}, b.standing());
  ASSERT_FALSE(rows.in_order());
  EXPECT_NE(rows.violations().front().find("worker 1 enters while worker 0 is in resource 0"),
            std::string::npos);
}

TEST_F(SimulateRegister, WorkersAreNamedByTheirProcessWhereThereAreSeveral) {
  Register by_process{*ledger, workers, resources, false, 2};
  by_process.enter(1, {alone(0, 1)}, a.standing());
  by_process.enter(2, {alone(0, 2)}, b.standing());
  ASSERT_FALSE(by_process.in_order());
  EXPECT_NE(by_process.violations().front().find("worker 1.0 enters while worker 0.1 is in"),
            std::string::npos)
      << by_process.violations().front();
}

TEST_F(SimulateRegister, ReadersShareAndWritersDoNot) {
  rows.enter(0, {shared(0)}, a.standing());
  rows.enter(1, {shared(0)}, b.standing());
  EXPECT_TRUE(rows.in_order());
  const Lease writer;
  rows.enter(2, {alone(0, 1)}, writer.standing());
  EXPECT_FALSE(rows.in_order());
}

TEST_F(SimulateRegister, AHolderWhoseLeaseHasEndedMayBeThereButNotWrite) {
  rows.enter(0, {alone(0, 1)}, a.standing());
  a.end();
  workers[0][0].valid_until = a.until.time_since_epoch().count();
  EXPECT_TRUE(rows.enter(1, {alone(0, 2)}, b.standing()));
  rows.leave(0, 0, a.standing());
  rows.leave(1, 0, b.standing());
  EXPECT_TRUE(rows.in_order()) << rows.violations().front();
  EXPECT_EQ(ledger->outlived, 1U);
  EXPECT_EQ(ledger->refused, 1U);
  EXPECT_EQ(ledger->writes, 1U);
}

TEST_F(SimulateRegister, AnOverlapWithALeaseThatWasRenewedIsFoundWhenItLeaves) {
  a.until = BootClock::now() - 1s;  // as it was when it entered
  rows.enter(0, {alone(0, 1)}, a.standing());
  rows.enter(1, {alone(0, 2)}, b.standing());
  EXPECT_TRUE(rows.in_order()) << "nobody but the holder can know";
  a.until = BootClock::now() + 1h;
  rows.leave(0, 0, a.standing());
  EXPECT_FALSE(rows.in_order());
}

TEST_F(SimulateRegister, AFenceThatDoesNotRiseIsRefusedAndWrongIfTheLeaseIsValid) {
  rows.enter(0, {alone(0, 5)}, a.standing());
  rows.leave(0, 0, a.standing());
  b.valid = false;
  EXPECT_FALSE(rows.enter(1, {alone(0, 5)}, b.standing()));
  EXPECT_TRUE(rows.in_order());
  b.valid = true;
  EXPECT_FALSE(rows.enter(1, {alone(0, 4)}, b.standing()));
  EXPECT_FALSE(rows.in_order());
}

TEST_F(SimulateRegister, AnUpdateThatWouldBeLostIsFoundWhateverTheLeasesSay) {
  a.valid = false;
  b.valid = false;
  rows.enter(0, {alone(0, 1)}, a.standing());
  rows.leave(0, 0, a.standing());
  rows.enter(1, {alone(0, 2)}, b.standing());
  resources[0].number = 7;
  rows.leave(1, 0, b.standing());
  EXPECT_FALSE(rows.in_order());
}

TEST_F(SimulateRegister, ATableExcludesItsRowsBothWays) {
  rows.enter(0, {alone(0, 1)}, a.standing());
  rows.enter(1, {alone(1, 1)}, b.standing());
  EXPECT_TRUE(rows.in_order()) << "without a table they have nothing to do with each other";
  const Lease c;
  table.enter(2, {alone(2, 1)}, c.standing());
  EXPECT_EQ(ledger->violations, 1U) << "a row, while the table is held";
}

TEST_F(SimulateRegister, WhatWasBrokenOrKilledIsNoOverlap) {
  rows.enter(0, {alone(0, 1)}, a.standing());
  rows.evicting(a.owner);
  rows.lost_early(0, 0, a.owner);
  rows.enter(1, {alone(0, 2)}, b.standing());
  rows.leave(0, 0, a.standing());
  EXPECT_TRUE(rows.in_order()) << rows.violations().front();
  Register::Pause(rows).forget(1);
  const Lease c;
  rows.enter(2, {alone(0, 3)}, c.standing());
  EXPECT_TRUE(rows.in_order()) << rows.violations().front();
  rows.lost_early(2, 0, c.owner);
  EXPECT_FALSE(rows.in_order());
}

}  // namespace
}  // namespace cli::simulation
