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

/// The processes of the group that still run. A zombie does not, once all its threads are gone.
std::vector<Member> living_members(pid_t group);

/// Whether some of them can't be ended.
bool any_out_of_reach(const std::vector<Member>& members);

/// "2 processes of the command can't be ended (17 of root, 18 of root): Operation not permitted".
std::string cannot_end(const std::vector<Member>& members);

}  // namespace cli
