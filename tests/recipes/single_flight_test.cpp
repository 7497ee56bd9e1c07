// Row 3.2: look, lock, look again, generate, store; force, exists, remove.
#include "interlock/single_flight.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <stdexcept>

#include "conformance/wire.hpp"
#include "interlock/log.hpp"
#include "recipes/recipe.hpp"
#include "recipes/shared_cache.hpp"

namespace interlock::recipes {
namespace {

using Text = std::future<std::string>;

/// A gate in a generator or a cache: whoever comes waits until it is opened.
class Gate {
 public:
  void pass() {
    ++came_;
    opened_.wait();
  }
  void wait_for_somebody() {
    EXPECT_TRUE(eventually([&] { return came_ > 0; }));
  }
  void open() { open_.set_value(); }
  [[nodiscard]] int came() const { return came_; }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
  std::atomic<int> came_{0};
};

class SingleFlights : public Recipe {
 protected:
  static constexpr const char* kLock = "single-flight:k";

  /// Makes "1", "2", … and counts.
  std::function<std::string(const std::string&)> counter() {
    return [this](const std::string&) { return std::to_string(++runs_); };
  }
  /// The same, once the gate is open.
  std::function<std::string(const std::string&)> behind(Gate& gate) {
    return [this, &gate](const std::string&) {
      const int run = ++runs_;
      gate.pass();
      return std::to_string(run);
    };
  }
  template <class Generator>
  SingleFlight flight(Generator generate, SingleFlightOptions options = {}) {
    return {client(), cache_.functions(), std::move(generate), std::move(options)};
  }
  static Text get(SingleFlight& flight, const std::string& key = "k") {
    return std::async(std::launch::async, [&flight, key] { return flight.get(key); });
  }
  static Text force(SingleFlight& flight) {
    return std::async(std::launch::async, [&flight] { return flight.force("k"); });
  }
  void wait_for_waiters(std::size_t count) {
    EXPECT_TRUE(eventually([&] { return waiters(kLock) == count; })) << waiters(kLock);
  }

  SharedCache cache_;
  std::atomic<int> runs_{0};
};
INSTANTIATE_TEST_SUITE_P(, SingleFlights, testing::ValuesIn(stores()), store_name);

TEST_P(SingleFlights, AHitTakesNoLockAndNoGenerator) {
  auto flights = flight(counter());
  const auto held = Mutex(client(), kLock).acquire();
  cache_.put("k", "there");
  EXPECT_EQ(flights.get("k"), "there");
  EXPECT_TRUE(flights.exists("k"));
  EXPECT_FALSE(flights.exists("other"));
  EXPECT_EQ(runs_, 0);
}

// Row 3.2: it looks again under the lock, as another may have stored the value between the first look and
// the lock.
TEST_P(SingleFlights, WhatWasStoredBetweenTheFirstLookAndTheLockIsNotGeneratedAgain) {
  int looks = 0;
  cache_.before_get = [&] {
    if (++looks == 2) cache_.put("k", "made by another");
  };
  auto flights = flight(counter());
  EXPECT_EQ(flights.get("k"), "made by another");
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(runs_, 0);
}

// Rows 3.2 and 3.8: the same after it waited for the one who made it; and the log says so.
TEST_P(SingleFlights, WhatWasStoredWhileItWaitedIsFoundAndLogged) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto log = std::make_shared<Log>([&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::string(to_string(level)) + " " + std::string(line));
  });
  {
    SingleFlight flights(client({.observer = log}), cache_.functions(), counter());
    auto maker = RwLock(client(), kLock, {.hierarchy = false}).write();
    auto caller = get(flights);
    wait_for_waiters(1);
    cache_.put("k", "made by another");
    maker.release();
    EXPECT_EQ(caller.get(), "made by another");
  }
  EXPECT_EQ(runs_, 0);
  const std::lock_guard lock(mutex);
  const auto found = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("info event=found lock=single-flight:k waited_ms=");
  });
  EXPECT_NE(found, lines.end()) << testing::PrintToString(lines);
}

// Row 3.2 and acceptance case 39.
TEST_P(SingleFlights, FiveConcurrentCallersAreOneGenerationAndForceIsOneMore) {
  Gate gate;
  auto flights = flight([&](const std::string&) {
    if (++runs_ == 1) gate.pass();
    return std::to_string(runs_);
  });
  std::vector<Text> callers;
  for (int i = 0; i < 5; ++i) callers.push_back(get(flights));
  gate.wait_for_somebody();
  gate.open();
  for (auto& caller : callers) EXPECT_EQ(caller.get(), "1");
  EXPECT_EQ(runs_, 1);

  EXPECT_EQ(flights.force("k"), "2");
  EXPECT_EQ(flights.get("k"), "2");
  EXPECT_EQ(runs_, 2);
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, AGeneratorThatOutlastsTheTtlIsNotJoinedByAnother) {
  auto slow = [&](const std::string&) {
    const int run = ++runs_;
    std::this_thread::sleep_for(2500ms);
    return std::to_string(run);
  };
  const SingleFlightOptions brief{.ttl = 1s};
  auto a = flight(slow, brief);
  auto b = flight(slow, brief);
  auto c = flight(slow, brief);
  auto first = get(a);
  auto second = get(b);
  auto third = get(c);
  EXPECT_EQ(first.get(), "1");
  EXPECT_EQ(second.get(), "1");
  EXPECT_EQ(third.get(), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_P(SingleFlights, CallersOfOneProcessHaveOnePlaceInTheQueue) {
  Gate gate;
  auto maker = flight(behind(gate));
  auto others = flight(counter());
  auto made = get(maker);
  gate.wait_for_somebody();
  std::vector<Text> callers;
  for (int i = 0; i < 8; ++i) callers.push_back(get(others));
  wait_for_waiters(1);
  gate.open();
  EXPECT_EQ(made.get(), "1");
  for (auto& caller : callers) EXPECT_EQ(caller.get(), "1");
  EXPECT_EQ(runs_, 1);
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, ThoseWhoWaitedAreLetInTogether) {
  Gate generated;
  Gate looked;
  auto maker = flight(behind(generated));
  // This one takes its time to look into the cache, and has the lock shared meanwhile.
  Cache hesitant = cache_.functions();
  std::atomic<int> looks{0};
  hesitant.get = [&](const std::string& key) {
    if (++looks > 1) looked.pass();
    return cache_.get(key);
  };
  SingleFlight slow(client(), hesitant, counter());
  auto quick = flight(counter());
  auto made = get(maker);
  generated.wait_for_somebody();
  auto first = get(slow);
  wait_for_waiters(1);
  auto second = get(quick);
  wait_for_waiters(2);
  generated.open();
  EXPECT_EQ(made.get(), "1");
  EXPECT_EQ(second.get(), "1") << "though the one before it is not through";
  looked.wait_for_somebody();
  looked.open();
  EXPECT_EQ(first.get(), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_P(SingleFlights, AllWhoWaitedGetTheGeneratorsError) {
  Gate gate;
  const auto fails = [&](const std::string&) -> std::string {
    ++runs_;
    gate.pass();
    throw std::out_of_range("no such tile\nat all");
  };
  auto maker = flight(fails);
  auto near = get(maker);
  gate.wait_for_somebody();
  auto other = flight(counter());
  auto third = flight(counter());
  auto far = get(other);
  auto far_too = get(third);
  wait_for_waiters(2);
  gate.open();
  EXPECT_THROW(near.get(), std::out_of_range);
  for (auto* caller : {&far, &far_too}) {
    try {
      ADD_FAILURE() << "got " << caller->get();
    } catch (const GenerationFailed& error) {
      EXPECT_STREQ(error.what(),
                   "the generator of 'k' failed in another process: no such tile\\x0aat all");
    }
  }
  EXPECT_EQ(runs_, 1);
  // It is no verdict on the key: whoever comes later tries again.
  EXPECT_EQ(other.get("k"), "2");
}

TEST_P(SingleFlights, AnErrorIsToldAgainIfTheNextRunFails) {
  std::vector<std::unique_ptr<Gate>> gates;
  for (int i = 0; i < 2; ++i) gates.push_back(std::make_unique<Gate>());
  auto maker = flight([&](const std::string&) -> std::string {
    const auto run = static_cast<std::size_t>(runs_++);
    gates.at(run)->pass();
    throw std::runtime_error("failure " + std::to_string(run));
  });
  auto other = flight(counter());
  for (std::size_t run = 0; run < 2; ++run) {
    auto near = get(maker);
    gates[run]->wait_for_somebody();
    auto far = get(other);
    wait_for_waiters(1);
    gates[run]->open();
    EXPECT_THROW(near.get(), std::runtime_error);
    try {
      ADD_FAILURE() << "got " << far.get();
    } catch (const GenerationFailed& error) {
      EXPECT_TRUE(std::string(error.what()).ends_with("failure " + std::to_string(run)))
          << error.what();
    }
  }
}

TEST_P(SingleFlights, IfErrorsAreNotToldTheNextTriesItselfAndTheOthersGetItsValue) {
  const SingleFlightOptions silent{.tell_errors_for = 0s};
  Gate first;
  Gate second;
  auto a = flight(
      [&](const std::string&) -> std::string {
        first.pass();
        throw std::runtime_error("no");
      },
      silent);
  auto b = flight(behind(second), silent);
  auto c = flight(behind(second), silent);
  auto failed = get(a);
  first.wait_for_somebody();
  auto one = get(b);
  auto other = get(c);
  wait_for_waiters(2);
  first.open();
  EXPECT_THROW(failed.get(), std::runtime_error);
  second.wait_for_somebody();
  wait_for_waiters(1);
  second.open();
  EXPECT_EQ(one.get(), "1");
  EXPECT_EQ(other.get(), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_P(SingleFlights, ConcurrentForcesShareOneRun) {
  cache_.put("k", "old");
  Gate gate;
  auto a = flight(behind(gate));
  auto b = flight(counter());
  auto first = force(a);
  gate.wait_for_somebody();
  auto other_process = force(b);
  wait_for_waiters(1);
  EXPECT_EQ(b.get("k"), "old") << "meanwhile, there is a value";
  gate.open();
  EXPECT_EQ(first.get(), "1");
  EXPECT_EQ(other_process.get(), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_P(SingleFlights, AForceIsNotContentWithAValueThatWasThere) {
  cache_.put("k", "old");
  Gate gate;
  auto a = flight([&](const std::string&) -> std::string {
    gate.pass();
    throw std::runtime_error("no");
  });
  auto b = flight(counter(), {.tell_errors_for = 0s});
  auto fails = force(a);
  gate.wait_for_somebody();
  auto goes_on = force(b);
  wait_for_waiters(1);
  gate.open();
  EXPECT_THROW(fails.get(), std::runtime_error);
  EXPECT_EQ(goes_on.get(), "1");
}

TEST_P(SingleFlights, RemovingWaitsForARunSoThatItCannotPutBackWhatWasRemoved) {
  Gate gate;
  auto a = flight(behind(gate));
  auto b = flight(counter());
  auto made = get(a);
  gate.wait_for_somebody();
  auto removed = std::async(std::launch::async, [&] { b.remove("k"); });
  wait_for_waiters(1);
  gate.open();
  EXPECT_EQ(made.get(), "1");
  removed.get();
  EXPECT_FALSE(a.exists("k"));
  EXPECT_EQ(b.get("k"), "2");
}

TEST_P(SingleFlights, WhoGivesUpDoesNotSpoilItForTheOthers) {
  Gate gate;
  auto a = flight(behind(gate));
  auto b = flight(counter(), {.max_wait = 20ms});
  std::stop_source stop;
  auto impatient = std::async(std::launch::async, [&] { return a.try_get_for("k", 5ms); });
  auto stopped =
      std::async(std::launch::async, [&] { return a.try_get_for("k", 1h, stop.get_token()); });
  gate.wait_for_somebody();
  auto patient = get(a);
  EXPECT_EQ(impatient.get(), std::nullopt);
  stop.request_stop();
  EXPECT_EQ(stopped.get(), std::nullopt);
  try {
    ADD_FAILURE() << "got " << b.get("k");
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::timed_out);
    EXPECT_NE(std::string(error.what()).find("'k' was not there within 20ms"), std::string::npos)
        << error.what();
  }
  wait_for_waiters(0);
  gate.open();
  EXPECT_EQ(patient.get(), "1");
  EXPECT_EQ(b.get("k"), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_P(SingleFlights, AValueThatNobodyWaitedForIsStoredAllTheSame) {
  Gate gate;
  auto a = flight(behind(gate));
  EXPECT_EQ(a.try_get_for("k", 50ms), std::nullopt);
  gate.open();
  EXPECT_EQ(a.get("k"), "1");
  EXPECT_LE(runs_, 1);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(SingleFlights, WithoutItsLockAValueGoesToItsCallersAndNotIntoTheCache) {
  std::vector<std::string> problems;
  auto a = flight(
      [&](const std::string&, const std::stop_token& stop) {
        ++runs_;
        store().break_hold(kLock);
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        return std::string("late");
      },
      {.ttl = 1s, .on_problem = [&](const std::string& key, const std::exception_ptr& problem) {
         try {
           std::rethrow_exception(problem);
         } catch (const Error& error) {
           EXPECT_EQ(error.errc(), Errc::lost);
           problems.push_back(key + ": " + error.what());
         }
       }});
  EXPECT_EQ(a.get("k"), "late");
  EXPECT_EQ(cache_.get("k"), std::nullopt);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("was not stored"), std::string::npos) << problems[0];
}

TEST_P(SingleFlights, ACacheThatComparesGetsFencesThatRise) {
  std::vector<Fence> fences;
  Cache cache = cache_.functions();
  cache.put = {};
  cache.put_fenced = [&](const std::string& key, const std::string& value, Fence fence) {
    fences.push_back(fence);
    cache_.put(key, value);
  };
  SingleFlight a(client(), cache, counter());
  SingleFlight b(client(), cache, counter());
  EXPECT_EQ(a.get("k"), "1");
  EXPECT_EQ(b.force("k"), "2");
  EXPECT_EQ(a.force("k"), "3");
  ASSERT_EQ(fences.size(), 3U);
  EXPECT_LT(fences[0], fences[1]);
  EXPECT_LT(fences[1], fences[2]);
}

TEST_P(SingleFlights, WhatTheCacheThrowsPassesToTheCallers) {
  auto a = flight(counter());
  std::atomic<int> looks{0};
  cache_.before_get = [&] {
    if (++looks == 1) throw std::runtime_error("cache down");
  };
  EXPECT_THROW(a.get("k"), std::runtime_error) << "before the lock";
  looks = -1;
  EXPECT_THROW(a.get("k"), std::runtime_error) << "under the lock";
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(a.get("k"), "1");
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, AValueThatCannotBeStoredIsGivenOutAllTheSame) {
  std::atomic<int> problems{0};
  auto a = flight(counter(), {.on_problem = [&](const std::string&, const auto&) { ++problems; }});
  cache_.before_put = [] { throw std::runtime_error("cache full"); };
  EXPECT_EQ(a.get("k"), "1");
  EXPECT_EQ(a.get("k"), "2");
  EXPECT_EQ(problems, 2);
}

TEST_P(SingleFlights, AGeneratorThatNeedsItsOwnValueIsToldSo) {
  SingleFlight* self = nullptr;
  // a asks for b, and b for a.
  auto flights = flight([&](const std::string& key) {
    if (key == "r") self->remove("r");
    if (key == "f") return self->force("f");
    return self->get(key == "a" ? "b" : key == "b" ? "a" : key);
  });
  self = &flights;
  for (const auto* key : {"g", "f", "r", "a"}) {
    try {
      ADD_FAILURE() << "got " << flights.get(key);
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::deadlock) << error.what();
    }
  }
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, AGeneratorMayAskForOtherKeys) {
  SingleFlight* self = nullptr;
  auto flights = flight([&](const std::string& key) {
    return key == "a" ? self->get("b") + "!" : std::string("b's");
  });
  self = &flights;
  EXPECT_EQ(flights.get("a"), "b's!");
  EXPECT_EQ(cache_.get("b"), "b's");
}

TEST_P(SingleFlights, KeysAreAnyBytesAndLeaveNothingBehind) {
  auto flights = flight([](const std::string& key) { return "<" + key + ">"; });
  std::vector<std::string> keys{"",
                                std::string("\0\n\xff", 3),
                                std::string(100'000, 'x'),
                                std::string(100'000, 'x') + "y",
                                "#",
                                "#failed:k",
                                "a/b/c",
                                "größe"};
  for (int i = 0; i < 50; ++i) keys.push_back("key " + std::to_string(i));
  for (const auto& key : keys) EXPECT_EQ(flights.get(key), "<" + key + ">");
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, DestroyingItStopsGeneratorsAndWaitsForThem) {
  bool ended = false;
  {
    auto flights = flight([&](const std::string&, const std::stop_token& stop) -> std::string {
      ++runs_;
      EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
      ended = true;
      throw std::runtime_error("stopped");
    });
    EXPECT_TRUE(eventually([&] { return flights.try_get_for("k", 20ms) || runs_ > 0; }));
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, WhatAStoppedGeneratorGivesIsNotStored) {
  {
    auto flights = flight([&](const std::string&, const std::stop_token& stop) -> std::string {
      ++runs_;
      EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
      return "half of it";
    });
    EXPECT_TRUE(eventually([&] { return flights.try_get_for("k", 20ms) || runs_ > 0; }));
  }
  EXPECT_EQ(cache_.get("k"), std::nullopt);
  EXPECT_TRUE(nothing_left());
}

TEST_P(SingleFlights, ThatItsObjectIsGoneIsNoErrorForThoseWhoWaitElsewhere) {
  auto other = flight(counter());
  std::optional<SingleFlight> gone(
      flight([&](const std::string&, const std::stop_token& stop) -> std::string {
        runs_ = 1;
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        throw std::runtime_error("stopped");
      }));
  EXPECT_TRUE(eventually([&] { return gone->try_get_for("k", 20ms) || runs_ > 0; }));
  auto waiting = get(other);
  wait_for_waiters(1);
  gone.reset();
  EXPECT_EQ(waiting.get(), "2") << "made by another one";
}

TEST_P(SingleFlights, DestroyingItDoesNotWaitForAStoreThatIsSilent) {
  const auto wire = std::make_shared<conformance::Wire>();
  std::optional<SingleFlight> flights(
      std::in_place,
      Client(std::make_unique<conformance::Wired>(store().open(), wire, 2 * kPatience)),
      cache_.functions(), counter());
  wire->set_all(conformance::Fate::silence);
  EXPECT_EQ(flights->try_get_for("k", 20ms), std::nullopt);
  const auto began = BootClock::now();
  flights.reset();
  EXPECT_LT(BootClock::now() - began, kPatience) << "a call that is not answered lasts for longer";
  EXPECT_EQ(runs_, 0);
}

TEST_P(SingleFlights, WhatMakesNoSenseIsRefused) {
  const auto locks = client();
  const auto refused = [&](const Cache& cache, const SingleFlightOptions& options,
                           Errc code = Errc::invalid) {
    try {
      SingleFlight(locks, cache, counter(), options);
      return false;
    } catch (const Error& error) {
      return error.errc() == code;
    }
  };
  const auto cache = cache_.functions();
  EXPECT_FALSE(refused(cache, {}));
  EXPECT_TRUE(refused({.get = cache.get, .put = {}}, {}));
  EXPECT_TRUE(refused({.get = {}, .put = cache.put}, {}));
  EXPECT_TRUE(refused(cache, {.prefix = "a\nb"}));
  EXPECT_TRUE(refused(cache, {.ttl = 0s}, Errc::invalid_ttl));
  EXPECT_TRUE(refused(cache, {.stale_for = 1s}));
  EXPECT_TRUE(refused(cache, {.fresh_for = 0s}));
  EXPECT_TRUE(refused(cache, {.early = -1}));
  SingleFlight no_remove(locks, {.get = cache.get, .put = cache.put}, counter());
  EXPECT_THROW(no_remove.remove("k"), Error);
}

}  // namespace
}  // namespace interlock::recipes
