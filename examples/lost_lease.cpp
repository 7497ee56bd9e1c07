// A holder is cut off from its store. It is told in time, by its own clock, and stops working
// before anybody else can get the lock.
#include <interlock/interlock.hpp>

#include <atomic>
#include <iostream>
#include <latch>
#include <thread>

#include "expect.hpp"

using namespace std::chrono_literals;

int main() {
  interlock::MemoryStore store;
  // One client reaches the store through a network that we can cut; the other one always does.
  auto network = interlock::chaos(store.open());
  auto* const cable = network.get();
  interlock::Client cut_off(std::move(network));
  interlock::Client other(store.open());

  interlock::Mutex mutex(cut_off, "crawler", {.ttl = 1s});
  auto lease = mutex.acquire();

  // For short jobs: look now and then.
  std::atomic<int> pages = 0;
  std::atomic<bool> stopped = false;
  std::jthread worker([&, lost = lease.lost()] {
    while (!lost.stop_requested()) {
      ++pages;
      std::this_thread::sleep_for(5ms);
    }
    stopped = true;
  });
  // For long ones: be called. It runs on the client's background thread, so keep it short: close a
  // socket, cancel a query.
  std::latch told(1);
  const std::stop_callback on_loss(lease.lost(), [&] { told.count_down(); });

  std::this_thread::sleep_for(1500ms);
  expect(lease && !told.try_wait(), "renewed in the background, well beyond its TTL");

  cable->set({.fail = 1.0});  // from now on, nothing gets through
  interlock::Mutex rival(other, "crawler");
  auto successor = rival.try_acquire_for(30s);
  expect(static_cast<bool>(successor), "the store frees it when the TTL has ended");

  told.wait();
  worker.join();
  expect(stopped, "and the holder has stopped, though nothing could reach it");
  expect(lease.state() == interlock::LeaseState::lost, "there is no way back: acquire again");
  std::cout << "stopped after " << pages << " pages: " << lease.lost_reason() << '\n';

  // A release says what it found. It can't take the lock away from the successor.
  cable->set({});
  expect(lease.release() == interlock::LeaseState::lost, "not ours any more");
  expect(static_cast<bool>(*successor), "the successor still has it");
}
