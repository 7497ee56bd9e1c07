// Stores as the model knows them: how each kind works, and what its work was measured to cost.
#pragma once

#include <string>
#include <vector>

#include "model.hpp"

namespace cli::scale {

/// The kinds that there are profiles for: "file", "redis", …
std::vector<std::string> profile_names();

/// As it was measured on the machine that `profiles_measured_on` tells of, or how it works with all
/// costs left out. Throws std::out_of_range for a name that is none of them.
Store profile(const std::string& name);
std::string profiles_measured_on();

/// Which kind a store's URL belongs to; empty: none that can be modelled.
std::string kind_of(const std::string& url);
/// How the store of this kind works, without costs.
Store shape_of(const std::string& kind);

}  // namespace cli::scale
