// Names with slashes form a tree: whoever holds "orders" excludes every "orders/…", and the other
// way round, without the rows having to ask for it.
#include <interlock/interlock.hpp>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

interlock::Mutex row(const interlock::Client& locks, int number) {
  return {locks, "orders/" + std::to_string(number), {.label = "update one order"}};
}

// Up to three rows are locked one by one in a single claim; more than that, the whole table.
interlock::Lease lock_rows(const interlock::Client& locks, const std::vector<int>& numbers) {
  if (numbers.size() > 3) {
    return interlock::Mutex(locks, "orders", {.label = "update many orders"}).acquire();
  }
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back("orders/" + std::to_string(number));
  return interlock::MultiLock(locks, names, {.label = "update a few orders"}).acquire();
}

}  // namespace

int main() {
  auto locks = interlock::connect("memory:");
  interlock::Mutex table(locks, "orders");

  // Rows don't know each other; the table knows them all.
  {
    auto one = row(locks, 1).acquire();
    auto two = row(locks, 2).acquire();
    expect(one && two, "different rows never wait for each other");
    expect(!table.try_acquire(), "the table has to wait for both");
  }
  {
    auto all = table.acquire();
    expect(!row(locks, 1).try_acquire(), "no row while the table is held");
  }

  // A table that waits holds back rows that come later, so it gets its turn.
  {
    auto few = lock_rows(locks, {1, 2, 3});
    expect(few.resources().size() == 3, "three rows, one lease");
    expect(!row(locks, 2).try_acquire(), "one of them");
    expect(static_cast<bool>(row(locks, 4).try_acquire()), "not one of them");
  }
  {
    auto many = lock_rows(locks, {1, 2, 3, 4});
    expect(many.resource() == "orders", "four rows are the table");
    expect(!row(locks, 9).try_acquire(), "it excludes rows that nobody named");
  }

  // The limit: rows hold the table *shared*. So a shared hold of the table keeps out whoever wants
  // all of it, and does not keep out those who write single rows.
  {
    interlock::RwLock whole(locks, "orders");
    auto reader = whole.read();
    expect(static_cast<bool>(row(locks, 1).try_acquire()), "a row can be written meanwhile");
    expect(!whole.try_write(), "the whole can't");
  }

  // Slashes that mean nothing.
  {
    interlock::Options flat{.hierarchy = false};
    auto parent = interlock::Mutex(locks, "https://example.org/a", flat).acquire();
    auto child = interlock::Mutex(locks, "https://example.org/a/b", flat).try_acquire();
    expect(static_cast<bool>(child), "just two names");
  }
  std::cout << "the table and its rows exclude each other\n";
}
