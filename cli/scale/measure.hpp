// What the work of a store costs, measured on the store itself, in a few seconds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "crew.hpp"
#include "model.hpp"

namespace cli::scale {

/// What was seen on the way, for people.
struct Measured {
  Store store{};
  bool server_here = false;  ///< the server's CPU could be seen, as it is on this machine
  double outside = 0;        ///< cores that were busy with something else meanwhile, at most
};

/// Real processes use the store for some seconds: one, several with a lock each, three with one lock.
/// Throws what run_crew throws.
Measured measure(const std::string& url, const std::function<void(const std::string&)>& say);

/// As if the server were on this machine, and all clients too.
Workload here(Workload workload);

}  // namespace cli::scale
