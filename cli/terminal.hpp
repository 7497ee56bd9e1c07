// The terminal that we were started from, if any, and whose turn it is to use it.
#pragma once

#include <sys/types.h>

#include <string>

#include "descriptor.hpp"

namespace cli {

/// The controlling terminal, whatever stdin is; nothing if there is none.
Descriptor open_terminal();

/// Hands the terminal to a command that runs in a process group of its own, and takes it back.
///
/// A command that is alone with us gets it from the start, as it would from a shell. In a pipeline
/// or a script the others may use the terminal, too (`interlock run … | less`), so there the
/// command gets it only when it asks, by reading from it.
class Terminal {
 public:
  Terminal();

  /// Whether the command should have it from the start.
  [[nodiscard]] bool for_command() const { return for_command_; }
  void started(pid_t group);

  enum class Next {
    nothing,
    go_on,    ///< it has the terminal, or the shell lets us go on
    hang_up,  ///< it wants the terminal, and there is no shell that could ever give it to us
  };
  /// The command was stopped by this signal; what to do with it. When it was Ctrl-Z, stops us as
  /// well, so that the shell notices.
  Next stopped(int signal);
  /// We were continued: the command goes on, with the terminal if it is ours to give.
  void continued();
  /// The command has ended.
  void take_back() const;
  /// Whether the command has it now, so that Ctrl-C goes to the command only.
  [[nodiscard]] bool lent() const { return group_ != 0 && is_of(group_); }

 private:
  [[nodiscard]] bool in_foreground() const;
  [[nodiscard]] bool is_of(pid_t group) const;

  Descriptor terminal_ = open_terminal();
  bool for_command_ = false;
  bool hung_up_ = false;
  pid_t group_ = 0;
};

/// How many columns it has; 80 if that can't be told.
int columns(int fd);

/// Whether to write colours and the like there: it is a terminal that knows how, and NO_COLOR is
/// not set.
bool fancy(int fd);

/// The text, cut to so many columns. What a terminal would act on, or not show, is escaped: \x1b, \u202e.
std::string printable(const std::string& text, int max_columns = 1 << 20);
/// The same JSON, with nothing in it that a terminal would act on, or not show: all of that as \uNNNN.
std::string printable_json(const std::string& json);
/// How many columns it takes.
int width(const std::string& text);

}  // namespace cli
