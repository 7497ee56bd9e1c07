// What has to happen before what, for deadlock.cpp: gates that open when others have opened.
//
// Every gate opens at most once, and so finding out which ones never do takes time in proportion to
// their number.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace interlock::core {

class Gates {
 public:
  using Id = std::uint32_t;
  static constexpr Id kOpen = 0;

  /// Opens when both have.
  Id both(Id one, Id other) {
    if (is_open(one)) return other;
    if (is_open(other)) return one;
    const auto made = make(2);
    gates_[one].opens.push_back(made);
    gates_[other].opens.push_back(made);
    return made;
  }

  /// Opens with the first that leads to it.
  Id any() { return make(1); }
  void lead(Id from, Id to) {
    if (is_open(from)) return open(to);
    gates_[from].opens.push_back(to);
  }

  /// A semaphore. First all who have slots in it, then those who want some.
  std::size_t room(std::uint32_t capacity) {
    rooms_.push_back({.capacity = capacity});
    return rooms_.size() - 1;
  }
  /// So many slots are free when this gate opens.
  void takes(std::size_t room, std::uint32_t slots, Id gate) {
    if (is_open(gate)) return;
    rooms_[room].taken += slots;
    gates_[gate].frees.emplace_back(room, slots);
  }
  /// Opens when so many slots can be had.
  Id wants(std::size_t room, std::uint32_t slots) {
    if (rooms_[room].fits(slots)) return kOpen;
    const auto [it, first] = rooms_[room].wanted.try_emplace(slots, kOpen);
    if (first) it->second = any();
    return it->second;
  }

  void open(Id gate) {
    std::vector<Id> nudged{gate};
    while (!nudged.empty()) {
      auto& next = gates_[nudged.back()];
      nudged.pop_back();
      if (next.missing == 0 || --next.missing > 0) continue;
      nudged.insert(nudged.end(), next.opens.begin(), next.opens.end());
      for (const auto& [number, slots] : next.frees) {
        auto& room = rooms_[number];
        room.taken -= slots;
        for (auto it = room.wanted.begin(); it != room.wanted.end() && room.fits(it->first);) {
          nudged.push_back(it->second);
          it = room.wanted.erase(it);
        }
      }
    }
  }
  [[nodiscard]] bool is_open(Id gate) const { return gates_[gate].missing == 0; }

 private:
  struct Gate {
    std::uint32_t missing = 0;
    std::vector<Id> opens{};
    std::vector<std::pair<std::size_t, std::uint32_t>> frees{};  // of which room, how many slots
  };
  struct Room {
    std::uint32_t capacity = 0;
    std::uint64_t taken = 0;               // by those who have not opened
    std::map<std::uint32_t, Id> wanted{};  // so many slots

    [[nodiscard]] bool fits(std::uint32_t slots) const {
      return taken == 0 || taken + slots <= capacity;
    }
  };

  Id make(std::uint32_t missing) {
    gates_.push_back({.missing = missing});
    return static_cast<Id>(gates_.size() - 1);
  }

  std::vector<Gate> gates_{1};
  std::vector<Room> rooms_;
};

}  // namespace interlock::core
