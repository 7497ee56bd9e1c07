// Money moves between accounts, each of which has a lock. A MultiLock takes both, or none: there is
// no order to agree on, and transfers in opposite directions can't wait for each other forever.
#include <interlock/interlock.hpp>

#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

class Bank {
 public:
  explicit Bank(interlock::Client locks) : locks_(std::move(locks)) {
    for (int i = 1; i <= 4; ++i) accounts_["account:" + std::to_string(i)] = 100;
  }

  bool transfer(const std::string& from, const std::string& to, int amount) {
    interlock::MultiLock both(locks_, std::vector{from, to}, {.ttl = 10s, .label = "transfer"});
    auto lease = both.acquire();
    int& source = accounts_.at(from);
    if (source < amount) return false;
    source -= amount;
    lease.release({from});  // give back early what is not needed any more
    std::this_thread::yield();
    accounts_.at(to) += amount;
    return true;
  }

  [[nodiscard]] int total() const {
    return std::accumulate(accounts_.begin(), accounts_.end(), 0,
                           [](int sum, const auto& account) { return sum + account.second; });
  }

 private:
  interlock::Client locks_;
  std::map<std::string, int> accounts_;
};

}  // namespace

int main() {
  Bank bank(interlock::connect("memory:"));
  {
    std::vector<std::jthread> clerks;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      clerks.emplace_back([&bank, seed] {
        std::minstd_rand random(seed);
        const auto any = [&] { return "account:" + std::to_string(1 + random() % 4); };
        for (int n = 0; n < 200; ++n) {
          const auto from = any();
          const auto to = any();
          if (from != to) (void)bank.transfer(from, to, static_cast<int>(random() % 50));
        }
      });
    }
  }
  std::cout << "total: " << bank.total() << '\n';
  expect(bank.total() == 400, "no money was made or lost");

  // All or nothing: while one is taken, the set takes nothing of the rest.
  auto locks = interlock::connect("memory:");
  interlock::Mutex one(locks, "account:1");
  interlock::Mutex two(locks, "account:2");
  auto held = one.acquire();
  interlock::MultiLock both(locks, {"account:1", "account:2"});
  expect(both.try_acquire().outcome() == interlock::Outcome::busy, "account:1 is taken");
  expect(static_cast<bool>(two.try_acquire()), "account:2 was left alone");

  // Modes can be mixed in one claim.
  interlock::MultiLock report(locks, {interlock::exclusive("report"), interlock::shared("config"),
                                      interlock::slots("workers", 2, 8)});
  auto lease = report.acquire();
  expect(lease.resources().size() == 3, "one lease on all three");
}
