// Random locks, modes, waits, cancellations, partial releases, changes, handovers, evictions and
// lost leases over each store, watched by a witness outside of it.
//
// Rerun one with INTERLOCK_TEST_SEED=<the seed it printed>; longer with INTERLOCK_TEST_ROUNDS=10.
#include "conformance/stress.hpp"

#include <cstdlib>
#include <random>

#include "conformance/overlap_register.hpp"
#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

/// One thread that does as it likes.
class Actor {
 public:
  Actor(std::vector<Client> clients, OverlapRegister& witness, std::uint64_t seed,
        bool errors_are_due)
      : clients_(std::move(clients)),
        witness_(witness),
        random_(seed),
        errors_are_due_(errors_are_due) {}

  void act(TimePoint until) {
    while (BootClock::now() < until) {
      try {
        if (chance(0.03)) {
          evict_somebody();
        } else {
          lock_something();
        }
      } catch (const Error& error) {
        // Evicted between its grant and the answer; or no answer within a very short wait.
        const bool due = error.errc() == Errc::lost ||
                         (error.errc() == Errc::unreachable && (errors_are_due_ || hasty_));
        EXPECT_TRUE(due) << error.what();
        ++errors_;
      }
    }
  }

  [[nodiscard]] int errors() const { return errors_; }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  bool chance(double of_one) { return std::uniform_real_distribution<>()(random_) < of_one; }
  Duration up_to(Duration most) {
    return Duration(below(static_cast<std::size_t>(most.count()) + 1));
  }
  const Client& any_client() { return clients_[below(clients_.size())]; }

  std::vector<Part> some_parts() {
    static const std::vector<std::string> names{"x", "y", "z", "t", "t/1", "t/2"};
    std::vector<Part> parts;
    for (std::size_t i = 0, count = chance(0.6) ? 1 : 2 + below(2); i < count; ++i) {
      if (i == 0 && clients_[0].traits().slots && chance(0.2)) {
        parts.push_back(slots("pool", static_cast<std::uint32_t>(1 + below(3)), 3));
      } else if (chance(0.5)) {
        parts.push_back(exclusive(names[below(names.size())]));
      } else {
        parts.push_back(shared(names[below(names.size())]));
      }
    }
    normalize(parts, true);
    return parts;
  }

  void lock_something() {
    const auto parts = some_parts();
    Options options{.priority = static_cast<std::int32_t>(below(3)) - 1};
    options.ttl = 5s;
    options.retry = {.attempts = 5, .first = 1ms, .max = 5ms};
    const bool short_lived = hasty_ = chance(0.1);
    if (short_lived) {
      options.ttl = 60ms;
      options.renew = false;
    }

    std::stop_source stop;
    std::jthread canceller;
    if (chance(0.15)) {
      canceller = std::jthread([stop, after = up_to(5ms)]() mutable {
        std::this_thread::sleep_for(after);
        stop.request_stop();
      });
    }
    auto wait = Wait::for_(kPatience, stop.get_token());
    if (chance(0.2)) wait = Wait::once();
    if (chance(0.2)) {
      wait = Wait::for_(up_to(10ms), stop.get_token());
      hasty_ = true;
    }
    if (chance(0.1))
      wait = Wait::times({.attempts = 3, .first = 1ms, .max = 2ms}, stop.get_token());

    auto attempt = any_client().acquire(parts, options, wait);
    if (attempt.outcome() == Outcome::failed) throw Error(attempt.error());
    if (attempt) use(*attempt, parts, short_lived);
  }

  void use(Lease& lease, std::vector<Part> parts, bool short_lived) {
    witness_.enter(lease, parts);
    struct Leave {  // also when an Error flies by
      OverlapRegister& witness;
      const Lease& lease;
      ~Leave() { witness.leave(lease); }
    } leave{witness_, lease};

    std::this_thread::sleep_for(up_to(short_lived ? Duration(90ms) : Duration(1ms)));
    if (chance(0.1) && lease.resources().size() > 1) give_some_back(lease, parts);
    if (chance(0.1)) turn_into_reader(lease, parts);
    if (chance(0.1)) turn_into_writer(lease, parts);
    if (chance(0.1)) static_cast<void>(lease.extend(5s));
    witness_.leave(lease);
    if (chance(0.1)) return hand_over(lease);
    if (chance(0.5)) lease.release();  // else the destructor does
  }

  void give_some_back(Lease& lease, std::vector<Part>& parts) {
    const auto name = lease.resources().at(below(lease.resources().size()));
    std::erase_if(parts, [&](const Part& part) { return part.resource == name || part.ancestor; });
    normalize(parts, true);
    witness_.leave(lease);
    witness_.enter(lease, parts, OverlapRegister::again);
    lease.release({name});
  }

  // The owner changes with the mode, so the witness looks away meanwhile.
  void turn_into_reader(Lease& lease, std::vector<Part>& parts) {
    witness_.leave(lease);
    if (!lease.downgrade()) return;
    for (auto& part : parts) {
      if (part.mode == Mode::exclusive) part.mode = Mode::shared;
    }
    witness_.enter(lease, parts);
  }

  void turn_into_writer(Lease& lease, std::vector<Part>& parts) {
    witness_.leave(lease);
    hasty_ = true;
    if (!(chance(0.5) ? lease.try_upgrade() : lease.try_upgrade_for(up_to(5ms)))) return;
    std::vector<Part> stayed;
    std::vector<Part> turned;
    for (auto& part : parts) {
      const bool turns = part.mode == Mode::shared && !part.ancestor;
      if (turns) part.mode = Mode::exclusive;
      (turns ? turned : stayed).push_back(part);
    }
    witness_.enter(lease, stayed, OverlapRegister::again);
    witness_.enter(lease, turned);
  }

  void hand_over(Lease& lease) {
    if (!any_client().traits().detaches) return;
    try {
      auto adopted = any_client().adopt(lease.detach());
      adopted.release();
    } catch (const Error& error) {
      if (error.errc() != Errc::lost) throw;
    }
  }

  void evict_somebody() {
    const auto& client = any_client();
    const auto resources = client.inspect().resources;
    if (resources.empty()) return;
    const auto& state = resources[below(resources.size())];
    if (state.holders.empty()) return;
    const auto& holder = state.holders[below(state.holders.size())];
    if (holder.ancestor) return;  // what is below it would have to go
    witness_.evicting(holder.owner);
    client.evict(state.resource, holder.owner);
  }

  std::vector<Client> clients_;
  OverlapRegister& witness_;
  std::mt19937_64 random_;
  bool errors_are_due_;
  bool hasty_ = false;
  int errors_ = 0;
};

CONFORMANCE_SUITE(Stress);

TEST_P(Stress, NothingOverlapsWhateverHappens) {
  COVERS(Rule<1>, Rule<2>, Rule<5>, Rule<7>, Rule<9>);
  stress([this] { return store().open(); }, false);
}

}  // namespace

std::uint64_t from_environment(const char* name, std::uint64_t fallback) {
  const auto* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

void stress(const std::function<std::unique_ptr<Backend>()>& open, bool errors_are_due) {
  const auto seed = from_environment("INTERLOCK_TEST_SEED", std::random_device{}());
  const auto rounds = from_environment("INTERLOCK_TEST_ROUNDS", 1);
  SCOPED_TRACE("INTERLOCK_TEST_SEED=" + std::to_string(seed));
  testing::Test::RecordProperty("seed", std::to_string(seed));

  OverlapRegister witness;
  const std::vector<Client> clients{Client(open()), Client(open()), Client(open())};
  const auto until = BootClock::now() + rounds * 2s;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 5; ++i) {
      threads.emplace_back(
          [&, i] { Actor(clients, witness, seed + i, errors_are_due).act(until); });
    }
  }
  for (const auto& overlap : witness.overlaps()) ADD_FAILURE() << overlap;
  EXPECT_GT(witness.entries(), 20) << "hardly anything was granted";
  const Client onlooker(open());
  EXPECT_TRUE(eventually([&] {
    try {
      return onlooker.inspect().resources.empty();
    } catch (const Error&) {
      return false;
    }
  })) << "something was left behind";
}

}  // namespace interlock::conformance
