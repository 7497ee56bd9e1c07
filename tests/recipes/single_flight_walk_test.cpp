// Many threads over three clients get, force, remove, give up and fail at random. Of each key there is
// one generator at a time, everybody gets a value that was made for the key or an error, nobody hangs.
//
// Rerun one with INTERLOCK_TEST_SEED=<the seed it printed>.
#include <atomic>
#include <cstdlib>
#include <random>
#include <set>
#include <stdexcept>

#include "recipes/recipe.hpp"
#include "recipes/shared_cache.hpp"

namespace interlock::recipes {
namespace {

RECIPE_SUITE(SingleFlightWalk);

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::uint64_t seed() {
  const auto* given = std::getenv("INTERLOCK_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

/// What all threads share: who generates what, what was made, and the luck of the cache and of the
/// generators.
class Register {
 public:
  explicit Register(std::uint64_t seed) : random_(seed) {}

  std::string generate(const std::string& key) {
    if (++inside_.at(key) > 1) ++overlaps_;
    std::this_thread::sleep_for(std::chrono::microseconds(below(2000)));
    --inside_.at(key);
    if (below(5) == 0) throw Fault("the generator failed");
    const std::lock_guard lock(mutex_);
    return *made_.insert(key + ":" + std::to_string(++runs_)).first;
  }
  void fail_sometimes(int one_of) {
    if (below(one_of) == 0) throw Fault("the cache failed");
  }
  void check(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(value.starts_with(key + ":") && made_.contains(value)) << key << " is " << value;
  }
  int below(int end) {
    const std::lock_guard lock(mutex_);
    return std::uniform_int_distribution<>(0, end - 1)(random_);
  }
  [[nodiscard]] int overlaps() const { return overlaps_; }
  [[nodiscard]] int runs() {
    const std::lock_guard lock(mutex_);
    return runs_;
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::set<std::string> made_;
  int runs_ = 0;
  std::map<std::string, std::atomic<int>> inside_ = [] {
    std::map<std::string, std::atomic<int>> none;
    for (const auto* key : {"a", "b", "c"}) none[key] = 0;
    return none;
  }();
  std::atomic<int> overlaps_{0};
};

void act(SingleFlight& flight, Register& all, const std::string& key) {
  switch (all.below(10)) {
    case 0:
      return all.check(key, flight.force(key));
    case 1:
      return flight.remove(key);
    case 2: {
      const auto value = flight.try_get_for(key, std::chrono::microseconds(all.below(3000)));
      if (value) all.check(key, *value);
      return;
    }
    case 3: {
      std::stop_source stop;
      const std::jthread stopper([&, after = all.below(2000)] {
        std::this_thread::sleep_for(std::chrono::microseconds(after));
        stop.request_stop();
      });
      const auto value = flight.try_get_for(key, kPatience, stop.get_token());
      if (value) all.check(key, *value);
      return;
    }
    default:
      return all.check(key, flight.get(key));
  }
}

/// Errors that are due; a wait that lasted for kPatience is a hang, and any other of the store's is not
/// due either.
template <class Act>
void expect_no_other_error(Act what) {
  try {
    what();
  } catch (const Fault&) {
  } catch (const GenerationFailed&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void walk(const std::function<Client()>& client, SingleFlightOptions options) {
  const auto number = seed();
  SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(number));
  Register all(number);
  SharedCache cache;
  cache.before_get = [&] { all.fail_sometimes(50); };
  cache.before_put = [&] { all.fail_sometimes(10); };
  options.max_wait = kPatience;
  options.tell_errors_for = 500ms;
  {
    std::vector<SingleFlight> flights;
    for (int i = 0; i < 3; ++i) {
      flights.emplace_back(
          client(), cache.functions(), [&](const std::string& key) { return all.generate(key); },
          options);
    }
    std::vector<std::jthread> threads;
    const auto until = BootClock::now() + 2s;
    for (int i = 0; i < 9; ++i) {
      threads.emplace_back([&, i] {
        while (BootClock::now() < until) {
          const std::string key(1, static_cast<char>('a' + all.below(3)));
          expect_no_other_error([&] { act(flights[static_cast<std::size_t>(i % 3)], all, key); });
        }
      });
    }
  }
  EXPECT_EQ(all.overlaps(), 0);
  EXPECT_GT(all.runs(), 0);
}

TEST_P(SingleFlightWalk, OneRunAtATimeAndAValueOrAnErrorForEverybody) {
  walk([&] { return client(); }, {});
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(SingleFlightWalk, AlsoWithValuesThatGrowOld) {
  walk([&] { return client(); }, {.fresh_for = 5ms, .stale_for = 10ms});
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace interlock::recipes
