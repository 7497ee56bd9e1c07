// A store as a round of torture meets it: real servers, an address, and what can go wrong with them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/client.hpp"
#include "interlock/clock.hpp"

namespace torture {

using Random = std::mt19937_64;

/// Something that goes wrong for a while. `begin` and `heal` are called from one thread, in turns; `heal` leaves
/// everything as it was before (but for lost data). Both return soon, and throw std::exception if they can't do it.
struct Fault {
  std::string name{};
  /// The store's documented promise allows two holders across this fault: data is lost, or an asynchronous replica
  /// takes over. Fences have to rise all the same.
  bool voids = false;
  /// Clients may notice: calls may fail, leases may be lost. False for what must be harmless, such as SCRIPT FLUSH.
  bool disturbs = true;
  /// The store's documents allow that a claim which ended is there again, until its TTL has ended, too.
  bool brings_back = false;
  /// Gives what was chosen, for the report: "node 2".
  std::function<std::string(Random&)> begin{};
  std::function<void()> heal{};
  /// It lasts for so long at least, whatever the schedule says: for what takes many tries to show.
  interlock::Duration at_least{};
};

/// What the documents of the store promise.
struct Promise {
  interlock::Duration shortest_ttl = std::chrono::milliseconds(500);
  /// Somebody is granted so long after all faults have healed, if the longest TTL was `ttl`.
  std::function<interlock::Duration(interlock::Duration ttl)> granted_within =
      [](interlock::Duration ttl) { return 2 * ttl + std::chrono::seconds(1); };
  bool across_processes = true;  ///< false: all workers live in one process (memory, chaos)
  bool queues = true;            ///< waiters are served in order of coming
  bool detaches = true;          ///< a lease can outlive its client
  bool timeout = true;           ///< its URL takes timeout=
  /// An allocation that fails ends no process. Asked of workers that are this program itself.
  bool survives_no_memory = false;
  /// A lock that is left for so long changes none of these promises to others.
  interlock::Duration long_ttl = std::chrono::minutes(10);
};

class Topology {
 public:
  Topology() = default;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  virtual ~Topology() = default;

  /// What workers connect to.
  [[nodiscard]] virtual std::string url() const = 0;
  [[nodiscard]] virtual Promise promise() const { return {}; }
  /// All that can go wrong here, always in the same order: a seed chooses by index.
  [[nodiscard]] virtual std::vector<Fault> faults() = 0;
  /// The port of each server that may become the master without a fault of ours, as when the machine stands still. They
  /// speak Redis' protocol without TLS. Any thread.
  [[nodiscard]] virtual std::vector<int> candidates() const { return {}; }
  /// What this machine does not permit, for the report: "a full disk: only root may mount one".
  [[nodiscard]] virtual std::vector<std::string> left_out() const { return {}; }
  /// What workers are to have in their environment, as "NAME=value".
  [[nodiscard]] virtual std::vector<std::string> environment() const { return {}; }
  /// For an administrator's look after the round, around all proxies. The address that workers use, unless told otherwise.
  [[nodiscard]] virtual std::string direct_url() const { return url(); }
};

struct TopologyKind {
  std::string name;
  std::function<std::unique_ptr<Topology>()> make;
};

/// "file", "redis", "redis-tls", "sentinel", "cluster", "redlock", "redlock5", "postgres", "postgres-lease", "pgbouncer",
/// "standby", "etcd", "etcd3", "memory", "chaos". Without the stores that were left out of the build.
const std::vector<TopologyKind>& topologies();

/// What is preloaded into workers so that their wall clocks can be set and their name servers fall silent. Empty where
/// that can't be, with sanitizers.
std::filesystem::path preload_library();

/// What workers connect with: interlock::connect, which also knows the URL of the chaos topology.
interlock::Client connect(const std::string& url, interlock::ClientOptions options = {});

}  // namespace torture
