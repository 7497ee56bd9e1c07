#include <algorithm>

#include "backends/etcd/keys.hpp"
#include "interlock/error.hpp"
#include "interlock/etcd.hpp"
#include "interlock/traits.hpp"

namespace interlock {

EtcdGuard etcd_guard(const Lease& lease, std::string_view resource, std::string_view prefix) {
  const auto all = lease.resources();
  const std::string name(resource.empty() ? lease.resource() : resource);
  if (std::find(all.begin(), all.end(), name) == all.end()) {
    throw Error(Errc::invalid, "this lease does not hold it",
                {.resource = name, .node = {}, .maybe_held = false});
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(Errc::unsupported, why,
                {.resource = name, .node = lease.traits().where, .maybe_held = false});
  };
  if (lease.traits().name != "etcd")
    refuse(
        "a guard is a key of etcd's, and this lease is of another store; check its fence instead");
  if (lease.mode(name) == Mode::shared)
    refuse("this lease is shared, and a guard is for one that holds alone; take an exclusive lock");
  if (lease.mode(name) == Mode::slots)
    refuse(
        "this lease has slots of a semaphore, and a guard is for one that holds alone; take a "
        "mutex");
  return {
      .key = etcd::Keys(std::string(prefix)).key(name, etcd::Letter::holds, etcd::Keys::kExclusive),
      .create_revision = static_cast<std::int64_t>(lease.fence(name).value)};
}

// A quoted string as Go reads it. Names have no control characters, but the key has a tab.
std::string EtcdGuard::etcdctl() const {
  std::string quoted;
  for (const char c : key) {
    if (c == '\t') {
      quoted += "\\t";
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return "create(\"" + quoted + "\") = \"" + std::to_string(create_revision) + "\"";
}

}  // namespace interlock
