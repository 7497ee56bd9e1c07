// A picture of a history, as SVG: a row for each hand, time from left to right.
#pragma once

#include <string>
#include <vector>

#include "checks/checks.hpp"

namespace torture {

/// Of all that happened between `from` and `to`. What is in `part` is framed. Bars are beliefs, a colour for each resource;
/// thin lines are waits; bands are faults.
std::string timeline(const checks::Index& index, std::int64_t from, std::int64_t to,
                     const std::vector<Event>& part = {});
/// Of what shows this violation, and a little before and after.
std::string timeline(const checks::Index& index, const checks::Violation& violation);

}  // namespace torture
