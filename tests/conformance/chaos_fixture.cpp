// The memory store, on a bad day: answers come late and calls arrive twice, wakes get lost. No rule
// of the contract takes note of that. On a worse day calls fail, too: then an Error is due, and all
// the rest still holds.
#include <atomic>

#include "conformance/stress.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

class ChaosFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override {
    auto bad = chaos(
        store_.open(),
        {.seed = ++seed_, .duplicate = 0.2, .drop_wake = 0.1, .delay = 0.3, .max_delay = 5ms});
    // Or each lost wake would cost the ten seconds of the memory store.
    auto wired = std::make_unique<Wired>(std::move(bad), std::make_shared<Wire>(), 5s);
    wired->adjust().heartbeat = 200ms;
    return wired;
  }
  [[nodiscard]] bool faithful() const override { return false; }

 private:
  MemoryStore store_;
  std::atomic<std::uint64_t> seed_ = 0;
};

[[maybe_unused]] const bool kRegistered = add_store<ChaosFixture>("chaos");

TEST(StressWithFaults, NothingOverlapsWhenCallsFailAndAnswersGetLost) {
  COVERS(Rule<9>, Rule<10>);
  const MemoryStore store;
  std::atomic<std::uint64_t> seed = from_environment("INTERLOCK_TEST_SEED", 1);
  stress(
      [&] {
        return chaos(store.open(), {.seed = ++seed,
                                    .fail = 0.05,
                                    .drop_reply = 0.05,
                                    .duplicate = 0.1,
                                    .drop_wake = 0.05,
                                    .delay = 0.2,
                                    .max_delay = 3ms});
      },
      true);
}

}  // namespace
}  // namespace interlock::conformance
