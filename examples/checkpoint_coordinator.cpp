// Several instances of a stream processor make checkpoints of one state. One at a time does, whichever
// comes first, and the storage refuses one that was overtaken: a checkpoint that an instance began
// before it was suspended for an hour must not become the newest.
// (Row 0.6 of tests/requirements.md.)
#include <interlock/interlock.hpp>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "store.hpp"

using namespace std::chrono_literals;

namespace {

struct Checkpoint {
  int number = 0;
  std::string by{};
};

// In earnest: a bucket, a table. It lets in only the newest holder of the lock.
using Storage = interlock::FencedValue<Checkpoint>;

class Instance {
 public:
  Instance(const std::string& url, std::string name, Storage& storage)
      : name_(std::move(name)),
        lock_(interlock::connect(url), "global:checkpoint", {.ttl = 60s, .label = name_}),
        storage_(storage) {}

  void checkpoint() const {
    interlock::with_lock(lock_, [this](interlock::Lease& lease) {
      auto last = storage_.read(lease);
      if (!last || !lease) return;       // overtaken: somebody else makes the next one
      std::this_thread::sleep_for(2ms);  // it takes its time
      expect(storage_.write(lease, {.number = last->number + 1, .by = name_}), "nobody in between");
    });
  }

 private:
  std::string name_;
  interlock::Mutex lock_;
  Storage& storage_;
};

}  // namespace

int main() {
  const Store store;
  Storage storage;
  {
    std::vector<std::jthread> instances;
    for (int i = 1; i <= 4; ++i) {
      instances.emplace_back([&, i] {
        const Instance instance(store.url(), "instance " + std::to_string(i), storage);
        for (int n = 0; n < 5; ++n) instance.checkpoint();
      });
    }
  }

  // An instance that slept through its lease, in the middle of a checkpoint.
  interlock::Mutex lock(interlock::connect(store.url()), "global:checkpoint",
                        {.ttl = 500ms, .renew = false});
  const auto asleep = lock.acquire();
  auto begun = storage.read(asleep);
  expect(begun && begun->number == 20, "four instances, five checkpoints each, none lost");

  Instance(store.url(), "instance 5", storage)
      .checkpoint();  // waits until the other one's time is up
  expect(!storage.write(asleep, {.number = begun->number + 1, .by = "a sleeper"}), "refused");

  const auto last = storage.read(lock.acquire());
  std::cout << "checkpoint " << last->number << " by " << last->by << '\n';
  expect(last->number == 21 && last->by == "instance 5", "the sleeper changed nothing");
}
