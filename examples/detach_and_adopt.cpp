// A lease as text: one process takes it, another one goes on with it. This is how shell scripts
// hold locks, and how a lock survives the restart of a service.
#include <interlock/interlock.hpp>

#include <stdlib.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "expect.hpp"

using namespace std::chrono_literals;

namespace {

std::filesystem::path temporary_directory() {
  auto name = (std::filesystem::temp_directory_path() / "interlock-example-XXXXXX").string();
  expect(mkdtemp(name.data()) != nullptr, "a temporary directory");
  return name;
}

}  // namespace

int main() {
  const auto directory = temporary_directory();
  const auto url = "file://" + (directory / "locks").string();
  std::string token;
  interlock::Fence fence;

  // The first process takes the lock and hands it on. From here on nobody renews it: it holds until
  // its TTL ends, also when this process is gone.
  {
    auto locks = interlock::connect(url);
    auto lease = interlock::Mutex(locks, "deploy", {.ttl = 5min, .label = "deploy v42"}).acquire();
    fence = lease.fence();
    token = lease.detach();
    expect(lease.state() == interlock::LeaseState::released, "this object holds nothing any more");
  }
  std::cout << "token: " << token << '\n';

  // The second one takes it over, and renews it from then on.
  auto locks = interlock::connect(url);
  interlock::Mutex mutex(locks, "deploy");
  expect(!mutex.try_acquire(), "it is held, though no lease object is around");
  {
    auto lease = locks.adopt(token);
    expect(lease.fence() == fence, "the same grant, the same fence");
    expect(lease.who().label == "deploy v42", "with its label");
  }  // released
  expect(static_cast<bool>(mutex.try_acquire()), "free again");

  // A token is good once. After the lock was released, it is nothing but text.
  try {
    auto lease = locks.adopt(token);
    expect(false, "there is nothing to adopt");
  } catch (const interlock::Error& error) {
    std::cout << error.what() << '\n';
    expect(error.errc() == interlock::Errc::lost, "the lease has ended");
  }
  std::filesystem::remove_all(directory);
}
