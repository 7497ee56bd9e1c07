// The programs of `interlock simulate`.
#pragma once

#include "command.hpp"

namespace cli {

int simulate_time(const Arguments& arguments);
int simulate_speed(const Arguments& arguments);
int simulate_stress(const Arguments& arguments);
int simulate_escalation(const Arguments& arguments);
int simulate_scale(const Arguments& arguments);

}  // namespace cli
