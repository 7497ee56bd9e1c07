// Signals as something to poll for, not as interruptions.
#pragma once

#include <csignal>
#include <optional>

#include "descriptor.hpp"

namespace cli {

/// Blocks the signals that a user or a service manager sends, for this thread and all that it
/// starts, and makes them readable; but for those that are ignored. Make it before the first thread.
/// As the first process of a container, it also waits for orphans when it reads.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next signal that came, if any.
  [[nodiscard]] std::optional<int> next() const;
  /// As it was before, for a command to be started with.
  [[nodiscard]] const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t original_{};
  Descriptor fd_;
};

/// The ones that ask a program to end.
inline bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/// Whether this process was started with the signal ignored, as by nohup(1).
bool is_ignored(int signal);

/// Stops this process as Ctrl-Z does, and returns when it was continued. False: it was not stopped, as
/// there is no shell that could continue it.
bool stop_here();

}  // namespace cli
