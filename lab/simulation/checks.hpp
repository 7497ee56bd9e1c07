// What must not be so, whatever happens. The names are those of lab/torture's checks.
//
//     exclusion    two beliefs that conflict at one moment
//     fences       a fence of an exclusive grant that is not above that of a grant which was told before this one was asked
//                  for; the same fence twice for different identities
//     ends         a wait that does not end when its limit has passed, or after everything has healed
//     answers      timed out before the limit, or cancelled though nobody cancelled
//     losses       a lease that is lost although a majority of the nodes was not disturbed for two TTLs. Not counted if it had
//                  less than a TTL before: it may be on a bare majority until renewals have healed the other nodes
//     creates      a node that is told to hold a lease again which no renewal of a majority confirmed
//     late         a node that carries out a request after one of a later connection of the same client
//     twice        a request that a node gets twice
//     stamp        a request that names another run of the server than the one that gets it
//     recovery     nobody is granted within the bound after everything has healed
//     left behind  a node that still has something of an owner that was released
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/redis/redlock_message.hpp"
#include "interlock/claim.hpp"
#include "world.hpp"

namespace simulation {

using interlock::Claim;
using interlock::Mode;
using interlock::redis::NodeSet;

class Checks {
 public:
  Checks(World& world, std::size_t nodes) : world_(world), nodes_(nodes) {}

  /// From now on the store promises nothing but fences.
  void only_fences() { only_fences_ = true; }

  /// Somebody believes to hold the claim from now on, until it ends, or until this time if that is sooner.
  std::uint64_t believes(const Claim& claim, Time until);
  void believes_until(std::uint64_t belief, Time until);
  void ends(std::uint64_t belief);

  /// Exclusive parts of a claim were granted just now.
  void fences(const Claim& claim, const std::vector<interlock::Fence>& fences, Time asked);

  /// Something goes wrong with these nodes, or with a client, from now until `until`.
  void disturbed(NodeSet nodes, std::optional<std::size_t> client, Time until);
  /// A lease of this client was lost just now.
  void lost(const Claim& claim, Time granted, std::size_t client, const std::string& why);
  /// Disturbed at this time: a client may be late.
  [[nodiscard]] bool client_disturbed(std::size_t client, Time from) const;

  [[nodiscard]] std::uint64_t grants() const { return grants_; }

 private:
  struct Belief {
    std::uint64_t id;
    Claim claim;
    Time until;
  };
  struct Granted {
    std::uint64_t fence;
    Time told;
    std::string identity;
    interlock::Owner owner;
  };
  struct Disturbance {
    NodeSet nodes;
    std::optional<std::size_t> client;
    Time from, until;
  };

  World& world_;
  std::size_t nodes_;
  bool only_fences_ = false;
  std::uint64_t last_ = 0;
  std::uint64_t grants_ = 0;
  std::vector<Belief> beliefs_;
  std::map<std::string, std::vector<Granted>> granted_;
  std::vector<Disturbance> disturbances_;
};

}  // namespace simulation
