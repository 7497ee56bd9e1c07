// interlock simulate scale
#pragma once

#include "command.hpp"

namespace cli {

/// `arguments`: what follows "simulate scale".
int simulate_scale(const Arguments& arguments);

}  // namespace cli
