// What the Loop drives: one connection of a store. Only the thread that leads the loop touches it.
#pragma once

#include <vector>

#include "core/io/task.hpp"
#include "interlock/clock.hpp"

namespace interlock::io {

/// What is over, to be told without any lock.
struct Finished {
  std::vector<Task<>> list;
  int urgent = 0;  ///< how many of them were posted as urgent
};

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// Does what can be done now: connects, sends, gives up what took too long. What goes wrong with the
  /// connection is for it to tell: an exception, of it or of `ready`, is told to nobody.
  virtual void advance(TimePoint now, Finished& finished) = 0;
  /// The descriptor is ready; or, `soon`, it is worth to sleep for a moment until it is.
  virtual void ready(TimePoint now, Finished& finished, bool soon) = 0;

  /// To poll: the descriptor (-1: none) and for what; and when to `advance` at the latest.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  [[nodiscard]] virtual short events() const noexcept = 0;
  [[nodiscard]] virtual TimePoint next() const noexcept = 0;

  /// Somebody has to look after it.
  [[nodiscard]] virtual bool active() const noexcept = 0;
  /// Answers are owed.
  [[nodiscard]] virtual bool busy() const noexcept = 0;
  /// An answer is on its way, nothing else to do, and `ready` can sleep for it.
  [[nodiscard]] virtual bool expects_answer() const noexcept = 0;

  /// Hands out all that is under way, for good: nobody is told what came of it.
  virtual void abandon(Finished& finished) = 0;
};

}  // namespace interlock::io
