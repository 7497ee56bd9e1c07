// What the kernel says about the members of a process group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cli {

/// A process that still runs.
struct Member {
  pid_t pid = 0;             ///< 0: there is one, and /proc does not show it
  uid_t user = 0;            ///< its real user
  bool may_be_ended = true;  ///< false: the kernel does not let us signal it
};

/// What /proc/PID/stat says; state X if that makes no sense.
struct Stat {
  char state = 'X';
  pid_t group = 0;
};
/// "pid (name, which may hold anything) state ppid pgrp …"
Stat parse_stat(const std::string& line);

/// The processes of the group that still run. A zombie does not, once all its threads are gone.
/// /proc is read as it was for a moment: a process that forks and exits in that moment hides its child. Ask GroupEnd
/// whether all of a group has ended.
std::vector<Member> living_members(pid_t group);

/// Finds out whether all processes of a group have ended. That is so if the kernel knows no process of the group, or
/// if several looks in succession find the same zombies, and nothing that runs.
class GroupEnd {
 public:
  void look(pid_t group);
  /// What the last look found.
  [[nodiscard]] const std::vector<Member>& living() const { return living_; }
  /// The kernel knows no process of the group: no child can have been overlooked.
  [[nodiscard]] bool vanished() const { return vanished_; }
  [[nodiscard]] bool ended() const { return vanished_ || alike_ >= kLooks; }
  /// Starts over: what has been seen so far proves nothing.
  void forget() { alike_ = 0; }

 private:
  static constexpr int kLooks = 3;

  std::vector<Member> living_;
  std::vector<pid_t> zombies_;
  bool vanished_ = false;
  int alike_ = 0;  ///< looks in succession that found these zombies only
};

/// Whether some of them can't be ended.
bool any_out_of_reach(const std::vector<Member>& members);

/// "2 processes of the command can't be ended (17 of root, 18 of root): Operation not permitted".
std::string cannot_end(const std::vector<Member>& members);

}  // namespace cli
