// What the kernel says about the members of a process group.
#pragma once

#include <sys/types.h>

namespace cli {

/// How many processes of the group still run. A zombie does not, once all its threads are gone.
int living_members(pid_t group);

}  // namespace cli
