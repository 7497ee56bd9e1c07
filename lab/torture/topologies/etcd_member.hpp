// A member of etcd as faults handle it.
#pragma once

#include "servers/etcd_server.hpp"
#include "torture/topologies/member.hpp"

namespace torture {

using interlock::servers::EtcdServer;

class EtcdMember : public Member {
 public:
  EtcdMember(std::string name, EtcdServer& server);

  [[nodiscard]] EtcdServer& server() const noexcept { return server_; }
  /// etcdctl. Throws if the member does not answer.
  std::string tell(const std::vector<std::string>& words) const;
  /// Raises or lowers the alarm that it has no space left.
  void raise_no_space() const;
  void lower_no_space() const;

 private:
  EtcdServer& server_;
};

using EtcdMembers = std::vector<EtcdMember*>;

/// Killed, stopped, restarted; compaction; no space; leases revoked.
std::vector<Fault> etcd_faults(const EtcdMembers& members);
Promise etcd_promise();

}  // namespace torture
