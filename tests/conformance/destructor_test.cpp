// Rule 11: destructors never throw and never block without bound.
#include <atomic>

#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Destructors);

class Counting final : public Observer {
 public:
  void on(const Observation& observation) noexcept override {
    ++counts_.at(static_cast<std::size_t>(observation.event));
  }
  [[nodiscard]] int count(Event event) const { return counts_.at(static_cast<std::size_t>(event)); }

 private:
  std::array<std::atomic<int>, 32> counts_{};
};

TEST_P(Destructors, AReleaseThatFailsIsReportedAndEndedByTheTtl) {
  COVERS(Rule<11>);
  const auto observer = std::make_shared<Counting>();
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire),
                     {.observer = observer, .release_timeout = 200ms});
  {
    const auto lease = Mutex(locks, "r", {.ttl = 1s}).acquire();
    wire->set_all(Fate::fail);
  }
  EXPECT_TRUE(eventually([&] { return observer->count(Event::release_failed) > 0; }));
  EXPECT_TRUE(Mutex(client(), "r").try_acquire_for(kPatience)) << "the TTL has ended it";
}

TEST_P(Destructors, AStoreThatHangsHoldsNoDestructorUp) {
  COVERS(Rule<11>);
  const auto wire = std::make_shared<Wire>();
  // A call that would take a minute: only the bound of the destructor can be quicker.
  const Client locks(std::make_unique<Wired>(store().open(), wire, 2 * kPatience),
                     {.release_timeout = 200ms});
  auto lease = std::make_unique<Lease>(Mutex(locks, "r").acquire());
  wire->set_all(Fate::silence);
  const auto start = BootClock::now();
  lease.reset();
  EXPECT_LT(BootClock::now() - start, kPatience / 2);
}

TEST_P(Destructors, AClientThatIsCutOffCanBeDestroyed) {
  COVERS(Rule<11>);
  const auto wire = std::make_shared<Wire>();
  const auto start = BootClock::now();
  {
    const Client locks(std::make_unique<Wired>(store().open(), wire, 2 * kPatience),
                       {.release_timeout = 200ms});
    const auto lease = Mutex(locks, "r").acquire();
    Mutex(locks, "r").acquire(Wait::for_(500ms), [](const Attempt&) {});
    wire->set_all(Fate::silence);
  }
  EXPECT_LT(BootClock::now() - start, kPatience / 2);
}

TEST_P(Destructors, AGuardThatIsDroppedFreesTheLockAtOnce) {
  COVERS(Rule<11>, Case<6>);
  const auto locks = client();
  const Mutex next(client(), "r");
  ASSERT_TRUE(next.try_acquire());  // connected from now on
  // A busy machine may take longer now and then, but not each time.
  auto quickest = Duration::max();
  for (int round = 0; round < 15 && quickest > 150ms; ++round) {
    auto lease = std::make_unique<Lease>(Mutex(locks, "r", {.ttl = 600s}).acquire());
    const auto dropped = BootClock::now();
    lease.reset();
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(next.try_acquire()); }));
    quickest = std::min(quickest, BootClock::now() - dropped);
  }
  EXPECT_LE(quickest, 150ms);
}

TEST_P(Destructors, AStackThatUnwindsReleases) {
  COVERS(Rule<11>);
  const auto locks = client();
  try {
    const auto lease = Mutex(locks, "r").acquire();
    throw std::runtime_error("something else went wrong");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Destructors, TheObserverSeesAnOrdinaryLife) {
  COVERS(Rule<11>);
  const auto observer = std::make_shared<Counting>();
  const auto locks = client({.observer = observer});
  auto held = Mutex(locks, "r").acquire();
  EXPECT_FALSE(Mutex(locks, "r").try_acquire());
  auto waiting = queue_up(Mutex(locks, "r"));
  EXPECT_TRUE(eventually([&] { return observer->count(Event::queued) > 0; }));
  held.release();
  waiting.lease().release();
  EXPECT_TRUE(eventually([&] { return observer->count(Event::released) == 2; }));
  EXPECT_EQ(observer->count(Event::asked), 3);
  EXPECT_EQ(observer->count(Event::granted), 2);
  EXPECT_EQ(observer->count(Event::timed_out), 1);
  EXPECT_EQ(observer->count(Event::lost), 0);
  EXPECT_EQ(observer->count(Event::release_failed), 0);
}

}  // namespace
}  // namespace interlock::conformance
