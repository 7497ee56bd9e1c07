// The memory store, on a bad day: answers come late and calls arrive twice, wakes get lost. No rule of
// the contract takes note of that. (Calls that fail are in chaos_test.cpp: there an Error is due.)
#include <atomic>

#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

class ChaosFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override {
    return chaos(store_.open(), {.seed = ++seed_,
                                 .duplicate = 0.2,
                                 .drop_wake = 0.1,
                                 .delay = 0.3,
                                 .max_delay = 5ms});
  }
  [[nodiscard]] bool faithful() const override { return false; }

 private:
  MemoryStore store_;
  std::atomic<std::uint64_t> seed_ = 0;
};

[[maybe_unused]] const bool kRegistered = add_store<ChaosFixture>("chaos");

}  // namespace
}  // namespace interlock::conformance
