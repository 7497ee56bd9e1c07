// Chance by seed, the same on every machine.
#pragma once

#include <chrono>
#include <cstdint>

namespace simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A stream of its own for a part of a run, so that leaving out another part does not change it.
  Random(std::uint64_t seed, std::uint64_t part)
      : state_(seed * 0x9e3779b97f4a7c15 + part * 0xd1342543de82ef95) {
    (void)next();
  }

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    auto mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31U);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  bool one_in(std::uint64_t many) { return below(many) == 0; }
  std::chrono::nanoseconds between(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
    const auto range = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + std::chrono::nanoseconds(static_cast<std::int64_t>(below(range)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace simulation
