// Keeps those who ask for the same resource without waiting for the answer in the order in which they
// ask: etcd serves the requests of one connection in any. One of them is on its way at a time.
//
//     the one before   | one that waits here
//     -----------------|------------------------------------------------------------------
//     was answered     | is next: it goes; later: it is told that it waits
//     had no time      | is next: it goes; later: nobody knows yet whether etcd answers
//     was not answered | goes, and so do all others: nobody waits for others' time limits
//
// Whoever was told that it waits is woken when it is next, and asks again. So however long the lane
// is, no call takes longer than what it takes etcd to answer one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::etcd {

/// Thread-safe.
class Lane {
 public:
  /// One of the two is called, or neither, if nobody wants the answer any more.
  struct Ask {
    std::function<void()> go;
    /// Answers that it waits behind so many, or some more.
    std::function<void(std::uint32_t)> wait;
    TimePoint until = TimePoint::max();  ///< nobody wants it after that
  };

  explicit Lane(std::function<void(const Owner&)> wake) : wake_(std::move(wake)) {}

  void enter(const std::string& resource, const Owner& owner, Ask ask);
  [[nodiscard]] bool knows(const Owner& owner) const;
  enum class Left { answered, early, unanswered };
  /// Whoever went has its answer, or there will be none. `early`: its own time was over.
  void leave(const Owner& owner, Left how);
  /// It is not wanted any more. If it is on its way, that does not mean that etcd answers: it leaves
  /// when that is known.
  void drop(const Owner& owner);

 private:
  enum class Turn { waits, first, let_through };
  struct Place {
    std::string resource;
    std::uint32_t number = 0;
    Turn turn = Turn::waits;
    bool on_its_way = false;
    Ask ask{};  ///< if it has not been told anything yet
  };
  struct Line {
    std::uint32_t entered = 0;                        ///< numbers given out
    std::deque<std::pair<std::uint32_t, Owner>> all;  ///< some may have left
    std::vector<Owner> asking;                        ///< the same
  };
  using Lines = std::unordered_map<std::string, Line>;
  using Work = std::vector<std::function<void()>>;

  Place* waiting(std::uint32_t number, const Owner& owner);
  /// The next one who waits, and has time: out of the line.
  std::optional<std::pair<std::uint32_t, Owner>> pop(Line& line, std::vector<Ask>& gone);
  /// It is its turn: what to do then.
  std::function<void()> call(Place& place, Turn turn, const Owner& owner);
  void leave(const Owner& owner, Left how, bool on_its_way);
  Work next(Lines::iterator line, bool tell, std::vector<Ask>& gone);
  Work let_all_through(Lines::iterator line);

  const std::function<void(const Owner&)> wake_;
  mutable std::mutex mutex_;
  std::unordered_map<Owner, Place> places_;
  Lines lines_;  ///< where somebody is on its way
};

}  // namespace interlock::etcd
