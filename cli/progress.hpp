// How far it is, in one line on the terminal.
#pragma once

#include <string>

#include "interlock/clock.hpp"

namespace cli {

/// Shows nothing where stderr is not a terminal. Gone when it goes out of scope.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// From 0 to 1. Not more often than the eye can see.
  void show(double part, const std::string& what);
  void clear();

 private:
  bool shown_here_ = false;
  bool shown_ = false;
  interlock::TimePoint next_{};
};

}  // namespace cli
