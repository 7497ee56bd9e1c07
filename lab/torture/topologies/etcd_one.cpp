// One etcd.
#include "torture/topologies/etcd_member.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/proxies.hpp"

namespace torture {
namespace {

class OneEtcd final : public Topology {
 public:
  [[nodiscard]] std::string url() const override { return "etcd://" + passage_.address(); }
  [[nodiscard]] std::string direct_url() const override { return server_.url(); }
  [[nodiscard]] Promise promise() const override { return etcd_promise(); }
  std::vector<Fault> faults() override {
    auto list = etcd_faults({&member_});
    append(list, passage_faults({&passage_}));
    list.push_back(busy_processors());
    list.push_back(flapping({&member_}));
    return list;
  }

 private:
  EtcdServer server_;
  EtcdMember member_{"the server", server_};
  Passage passage_{"the server", server_.port()};
};

}  // namespace

Kinds etcd_kinds() { return {kind<OneEtcd>("etcd")}; }

}  // namespace torture
