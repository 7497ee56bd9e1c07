// A picture of a history, as SVG: a row for each hand, time from left to right.
#pragma once

#include <string>

#include "checks/checks.hpp"

namespace torture {

/// Of what shows this violation, and a little before and after; of all, if no events show it. Bars are beliefs, a colour for
/// each resource; thin lines are waits; bands are faults. What the violation is about is framed.
std::string timeline(const checks::Index& index, const checks::Violation& violation);

}  // namespace torture
