// What each family of stores adds to the list of topologies.
#pragma once

#include "torture/topology.hpp"

namespace torture {

using Kinds = std::vector<TopologyKind>;

Kinds memory_kinds();
Kinds file_kinds();
Kinds redis_kinds();
Kinds sentinel_kinds();
Kinds cluster_kinds();
Kinds redlock_kinds();
Kinds postgres_kinds();
Kinds standby_kinds();
Kinds etcd_kinds();
Kinds etcd_cluster_kinds();

/// The URL of the chaos topology is this and a file.
inline const std::string kChaosScheme = "chaos:";
std::unique_ptr<interlock::Backend> open_chaos(const std::string& knobs);

template <class T>
TopologyKind kind(std::string name) {
  return {.name = std::move(name), .make = [] { return std::make_unique<T>(); }};
}

}  // namespace torture
