// The model of `simulate scale` against what queueing theory knows, and against the contract.
#include "scale/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace {

using namespace cli::scale;
using namespace std::chrono_literals;

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

/// One server at which only an acquire takes any time; everything else is for nothing.
Store one_queue(Duration service) {
  Store store;
  store.cost(Step::take).fixed = service;
  return store;
}

/// Each process with its own lock: nobody waits for a lock, only for the server.
Workload apart(int processes, Duration think, double spread) {
  return {.processes = processes, .think = think, .spread = spread, .duration = 200s};
}

// So many that think for so long come like raindrops.
constexpr int kMany = 4000;
Workload rain(double per_second, double spread) {
  auto work = apart(kMany, Duration(static_cast<std::int64_t>(kMany / per_second * 1e9)), spread);
  work.duration = 400s;
  return work;
}

TEST(ScaleModel, OneServerWithRandomServiceIsMM1) {
  for (const double load : {0.3, 0.6, 0.8}) {
    const auto seen = predict(one_queue(1ms), rain(load * 1000, 1.0));
    // Time in the system: s / (1 - load).
    EXPECT_NEAR(seconds(seen.mean_wait), 1e-3 / (1 - load), 1e-3 / (1 - load) * 0.06) << load;
  }
}

TEST(ScaleModel, OneServerWithConstantServiceIsMD1) {
  for (const double load : {0.3, 0.6, 0.8}) {
    const auto seen = predict(one_queue(1ms), rain(load * 1000, 0.0));
    const double expected = 1e-3 * (1 + load / (2 * (1 - load)));
    EXPECT_NEAR(seconds(seen.mean_wait), expected, expected * 0.06) << load;
  }
}

TEST(ScaleModel, FewClientsAreTheMachineRepairman) {
  for (const int clients : {1, 5, 20}) {
    const double r = 1e-3 / 10e-3;  // service to thinking
    double sum = 0;
    double term = 1;
    for (int k = 0; k <= clients; ++k) {
      sum += term;
      term *= (clients - k) * r;
    }
    const double expected = (1 - 1 / sum) * 1000;  // the server is not idle
    const auto seen = predict(one_queue(1ms), apart(clients, 10ms, 1.0));
    EXPECT_NEAR(seen.cycles_per_second, expected, expected * 0.03) << clients;
  }
}

TEST(ScaleModel, ServersOfAClusterShareTheLoad) {
  auto store = one_queue(1ms);
  store.servers = 4;
  const auto seen = predict(store, apart(400, 0ms, 0));
  EXPECT_NEAR(seen.cycles_per_second, 4000, 40);
}

TEST(ScaleModel, CoresBoundWhatAServerWithThreadsDoes) {
  auto store = one_queue(1ms);
  store.threads = 0;
  store.cores = 3;
  EXPECT_NEAR(predict(store, apart(100, 0ms, 0)).cycles_per_second, 3000, 30);
}

TEST(ScaleModel, ALogTakesAllThatCameMeanwhile) {
  Store store;
  store.threads = 0;
  store.cost(Step::take).logged = true;
  store.flush = 10ms;
  EXPECT_NEAR(predict(store, apart(1, 0ms, 0)).cycles_per_second, 100, 2);
  // Alone, a call takes one write; in a crowd, the rest of the one before and its own.
  EXPECT_GT(predict(store, apart(100, 0ms, 0)).cycles_per_second, 4900);
}

Store some_store() {
  Store store;
  for (auto& cost : store.costs) cost.fixed = 20us;
  store.client = 10us;
  store.one_way = 50us;
  store.push = 10us;
  store.cores = 2;
  return store;
}

Workload crowd(int processes, int locks) {
  return {.processes = processes, .locks = locks, .hold = 500us, .think = 1ms, .duration = 5s};
}

TEST(ScaleModel, LittlesLawHolds) {
  const auto work = crowd(50, 3);
  const auto seen = predict(some_store(), work);
  // All processes are somewhere: they think, wait, hold, or give back.
  const double release = seconds(10us + 2 * 50us + 20us);
  const double cycle = seconds(work.think + work.hold + seen.mean_wait) + release;
  EXPECT_NEAR(seen.cycles_per_second * cycle, work.processes, work.processes * 0.02);
}

TEST(ScaleModel, UtilisationIsThroughputTimesDemand) {
  auto work = apart(30, 5ms, 0);
  work.duration = 20s;
  const auto seen = predict(some_store(), work);
  EXPECT_NEAR(seen.server_load, seen.cycles_per_second * seconds(40us), 0.01);
}

TEST(ScaleModel, OneLockIsAsFastAsItsHandover) {
  auto work = crowd(40, 1);
  work.think = 0ns;
  work.spread = 0;
  work.steady = true;
  const auto seen = predict(some_store(), work);
  // Release, wake-up, the second call, the hold.
  const auto handover = (5us + 50us + 20us) + (50us + 10us) + (10us + 100us + 20us) + 500us;
  EXPECT_NEAR(seen.cycles_per_second, 1 / seconds(handover), 0.03 / seconds(handover));
  EXPECT_GT(seen.lock_load, 0.99);
  EXPECT_EQ(limit(seen), "the lock");
}

TEST(ScaleModel, AContendedCycleIsFourMessages) {
  auto work = crowd(10, 1);
  work.think = 0ns;
  const auto seen = predict(some_store(), work);
  EXPECT_NEAR(seen.calls_per_cycle, 3, 0.01);
  EXPECT_NEAR(seen.wakes_per_cycle, 1, 0.01);
}

TEST(ScaleModel, RenewalsComeEveryThirdOfTheTtl) {
  auto work = apart(100, 1s, 0);
  work.leases = 30;
  work.ttl = 30s;
  work.duration = 60s;
  const auto seen = predict(some_store(), work);
  const double others = seen.cycles_per_second * 2;
  EXPECT_NEAR(seen.messages_per_second - others, 300, 6);
}

/// Follows what the store decides, and holds it against the contract.
class Witness {
 public:
  void see(const Happening& h) {
    auto& lock = locks_[h.lock];
    switch (h.what) {
      case Happening::What::queued:
        lock.queue.push_back(h.process);
        break;
      case Happening::What::granted: {
        const auto at = std::find(lock.queue.begin(), lock.queue.end(), h.process);
        if (!h.shared && (at == lock.queue.end() ? !lock.queue.empty() : at != lock.queue.begin()))
          ++overtaken;
        if (at != lock.queue.end()) lock.queue.erase(at);
        if (!lock.holders.empty() && (!h.shared || lock.exclusive)) ++overlaps;
        lock.holders.insert(h.process);
        lock.exclusive = !h.shared;
        ++grants;
        break;
      }
      case Happening::What::released:
        if (lock.holders.erase(h.process) == 0) ++overlaps;
        ++releases;
        break;
    }
  }
  [[nodiscard]] int held() const {
    int sum = 0;
    for (const auto& [name, lock] : locks_) sum += static_cast<int>(lock.holders.size());
    return sum;
  }
  int overlaps = 0;
  int overtaken = 0;
  int grants = 0;
  int releases = 0;

 private:
  struct Row {
    std::vector<int> queue{};
    std::set<int> holders{};
    bool exclusive = false;
  };
  std::map<int, Row> locks_{};
};

TEST(ScaleModel, NobodySharesAnExclusiveLockAndNobodyOvertakes) {
  for (const double shared : {0.0, 0.7}) {
    for (const bool next_looks : {false, true}) {
      auto store = some_store();
      store.next_looks = next_looks;
      auto work = crowd(60, 4);
      work.shared = shared;
      work.skew = 0.8;
      Witness witness;
      predict(store, work, [&](const Happening& h) { witness.see(h); });
      EXPECT_GT(witness.grants, 1000);
      EXPECT_EQ(witness.overlaps, 0);
      EXPECT_EQ(witness.overtaken, 0);
      EXPECT_EQ(witness.grants - witness.releases, witness.held());
    }
  }
}

TEST(ScaleModel, AMajorityOfVotesDecides) {
  auto store = some_store();
  store.servers = store.votes = 5;
  Witness witness;
  const auto seen = predict(store, crowd(30, 2), [&](const Happening& h) { witness.see(h); });
  EXPECT_EQ(witness.overlaps, 0);
  EXPECT_GT(seen.cycles, 1000U);
}

TEST(ScaleModel, TheSameSeedGivesTheSameRun) {
  const auto store = some_store();
  auto work = crowd(50, 10);
  const auto first = predict(store, work);
  const auto again = predict(store, work);
  EXPECT_EQ(first.cycles, again.cycles);
  EXPECT_EQ(first.p99_wait, again.p99_wait);
  EXPECT_EQ(first.events, again.events);
  work.seed = 2;
  EXPECT_NE(predict(store, work).events, first.events);
}

TEST(ScaleModel, SkewMakesOneLockHot) {
  auto work = crowd(200, 1000);
  const auto even = predict(some_store(), work);
  work.skew = 1.2;
  const auto skewed = predict(some_store(), work);
  EXPECT_GT(skewed.lock_load, 2 * even.lock_load);
  EXPECT_LT(skewed.cycles_per_second, even.cycles_per_second);
}

TEST(ScaleModel, AMillionLocksAndTenThousandProcessesFit) {
  auto work = crowd(10'000, 1'000'000);
  work.think = 100ms;
  work.duration = 1s;
  const auto seen = predict(some_store(), work);
  EXPECT_GT(seen.cycles, 10'000U);
}

}  // namespace
