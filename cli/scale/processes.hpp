// What processes of this machine use of its cores.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "model.hpp"

namespace cli::scale {

/// CPU that these processes have used, with all their threads.
Duration cpu_of(const std::vector<pid_t>& processes);
/// CPU that the whole machine has used.
Duration cpu_of_machine();
/// Who listens at the addresses of this URL, with their children; empty: nobody on this machine.
std::vector<pid_t> servers_of(const std::string& url);

}  // namespace cli::scale
