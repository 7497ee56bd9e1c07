// The conformance suite: what every store has to do, in tests that run over each of them.
//
// A store joins with a file of a few lines, <name>_fixture.cpp, that says how to open it:
//
//     class MemoryFixture : public StoreFixture {
//      public:
//       std::unique_ptr<Backend> open() override { return store_.open(); }
//      private:
//       MemoryStore store_;
//     };
//     const bool kRegistered = add_store<MemoryFixture>("memory");
//
// A test is a TEST_P of a suite that CONFORMANCE_SUITE declared, and gets a fresh store. It waits
// on conditions, with deadlines that only a hang can miss, and never asks for less than so many
// milliseconds: machines are loaded.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/coverage.hpp"
#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "waiting.hpp"

namespace interlock::conformance {

using namespace std::chrono_literals;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::Waiting;

/// One store, empty at first. Made anew for every test.
class StoreFixture {
 public:
  StoreFixture() = default;
  StoreFixture(const StoreFixture&) = delete;
  StoreFixture& operator=(const StoreFixture&) = delete;
  virtual ~StoreFixture() = default;

  /// One more client's view of this store.
  virtual std::unique_ptr<Backend> open() = 0;

  /// Takes the resource away from its holders, behind their back. The default is what an operator
  /// does; a store whose data can be reached in another way should go that way.
  virtual void break_hold(const std::string& resource);

  /// Stops the store and starts it again, after all clients are gone.
  virtual void restart() {}

  /// Every call is answered as the store answered it, and every wake arrives. A store in which
  /// things go wrong on purpose says no, and is then excused from what takes such luck.
  [[nodiscard]] virtual bool faithful() const { return true; }
};

/// A store that the suite runs over.
struct Store {
  std::string name;
  std::unique_ptr<StoreFixture> (*make)();
};

/// For the output of a failed test.
inline void PrintTo(const Store& store, std::ostream* out) { *out << store.name; }

/// All that registered.
std::vector<Store>& stores();

inline std::string store_name(const testing::TestParamInfo<Store>& parameter) {
  return parameter.param.name;
}

template <class Fixture>
bool add_store(std::string name) {
  stores().push_back({std::move(name), []() -> std::unique_ptr<StoreFixture> {
                        return std::make_unique<Fixture>();
                      }});
  return true;
}

/// The base of all suites.
class Conformance : public testing::TestWithParam<Store> {
 protected:
  Conformance() : store_(GetParam().make()) {}

  [[nodiscard]] StoreFixture& store() { return *store_; }
  /// A client of its own: another connection, another background thread.
  [[nodiscard]] Client client(ClientOptions options = {}) {
    return Client(store_->open(), std::move(options));
  }

  /// The resource as an onlooker sees it; without holders and waiters if it is idle.
  [[nodiscard]] ResourceState look(const std::string& resource);
  [[nodiscard]] std::size_t holders(const std::string& resource);
  [[nodiscard]] std::size_t waiters(const std::string& resource);
  /// The store knows of nothing: nobody holds, nobody waits, no name is left.
  [[nodiscard]] bool nothing_left();

  /// Starts to wait, and comes back when it stands in the queue.
  [[nodiscard]] Waiting queue_up(const Acquirer& acquirer, Duration limit = kPatience);

 private:
  const Client& onlooker();

  std::unique_ptr<StoreFixture> store_;
  std::mutex mutex_;
  std::unique_ptr<Client> onlooker_;
};

}  // namespace interlock::conformance

/// Declares a suite whose tests run over every store: `Order.AWaiterIsServed/memory`.
#define CONFORMANCE_SUITE(Suite)       \
  class Suite : public Conformance {}; \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(stores()), store_name)
