// Why fences: a holder is stopped (a suspended machine, a long pause), its lease ends, another one
// takes over; then the first one wakes up in the middle of its work and writes. No lock can prevent
// that. A store that compares fences can.
#include <interlock/interlock.hpp>

#include <iostream>
#include <string>

#include "expect.hpp"

using namespace std::chrono_literals;

int main() {
  // Two programs that share a store. The clock is moved by hand, so that nobody has to wait.
  auto clock = std::make_shared<interlock::ManualClock>();
  interlock::MemoryStore store(clock);
  interlock::Client alice(store.open(), {.clock = clock});
  interlock::Client bob(store.open(), {.clock = clock});
  interlock::Mutex alices(alice, "report", {.ttl = 30s, .label = "alice"});
  interlock::Mutex bobs(bob, "report", {.ttl = 30s, .label = "bob"});
  // What the lock protects. In a database it is a condition in the statement; docs/recipes.md has it for
  // SQL, Redis and etcd.
  interlock::FencedValue<std::string> report;

  auto first = alices.acquire();
  expect(report.write(first, "draft by alice"), "she holds the lock");

  // Alice is stopped for a minute: no renewal, and no way to look at her clock.
  clock->advance(1min);

  auto second = bobs.acquire();
  // Reads count, too: whoever comes with a new fence shuts out all older ones.
  const auto text = report.read(second);
  expect(text.has_value(), "bob holds the lock");
  expect(report.write(second, *text + ", finished by bob"), "and writes");

  // Alice wakes up exactly where she was, and writes before she checks anything.
  expect(first.fence() < second.fence(), "fences rise from one grant to the next");
  const bool harm = report.write(first, "alice again");
  std::cout << "fence " << first.fence().value << " after " << second.fence().value << ": "
            << (harm ? "accepted" : "refused") << '\n';
  expect(!harm, "the store has seen a newer fence");

  // When she looks, she knows.
  expect(first.state() == interlock::LeaseState::lost, "lost");
  std::cout << "alice: " << first.lost_reason() << '\n';
  expect(report.read(second) == "draft by alice, finished by bob", "bob's work is intact");
}
