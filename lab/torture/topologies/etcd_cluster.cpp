// Three members of etcd, each in a network of its own if this machine permits that.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "torture/topologies/etcd_replacement.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/network.hpp"
#include "torture/topologies/proxies.hpp"

namespace torture {
namespace {

using interlock::servers::EtcdCluster;

constexpr int kMembers = 3;
/// The place of the clients; the members are at those before it.
constexpr int kClients = kMembers;

class ThreeEtcds final : public Topology {
 public:
  ThreeEtcds() {
    if (Network::permitted()) network_ = std::make_unique<Network>(kMembers + 1);
    std::vector<EtcdCluster::Place> places;
    for (int i = 0; network_ && i < kMembers; ++i)
      places.push_back({.host = network_->address(i), .under = network_->under(i)});
    cluster_ = std::make_unique<EtcdCluster>(places);
    for (int i = 0; i < kMembers; ++i) {
      auto& server = *cluster_->members().at(static_cast<std::size_t>(i));
      const auto name = "member " + std::to_string(i);
      members_.push_back(std::make_unique<EtcdMember>(name, server));
      if (network_) {
        passages_.push_back(
            std::make_unique<Passage>(name, server.port(), network_->address(i),
                                      [this] { return network_->socket_at(kClients); }));
      } else {
        passages_.push_back(std::make_unique<Passage>(name, server.port()));
      }
    }
    replacement_ = std::make_unique<EtcdReplacement>(members());
  }

  [[nodiscard]] std::string url() const override {
    std::string hosts;
    for (const auto& passage : passages_) hosts += (hosts.empty() ? "" : ",") + passage->address();
    return "etcd://" + hosts;
  }
  [[nodiscard]] Promise promise() const override { return etcd_promise(); }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    if (network_) return {};
    return {Network::kNotPermitted};
  }

  std::vector<Fault> faults() override {
    const auto members = this->members();
    Passages passages;
    for (const auto& passage : passages_) passages.push_back(passage.get());
    const Members all(members.begin(), members.end());

    auto list = etcd_faults(members);
    append(list, {on_leader(
                      {.name = "leader killed"}, [](EtcdMember& leader) { leader.take_down(); },
                      [](EtcdMember& leader) {
                        leader.bring_back();
                        leader.wait();
                      }),
                  // Before 3.5 it may revoke leases that are alive, when it wakes.
                  on_leader(
                      {.name = "leader stopped", .voids = true},
                      [](EtcdMember& leader) { leader.freeze(); },
                      [](EtcdMember& leader) { leader.thaw(); }),
                  on_leader({.name = "leader moved"}, [this](EtcdMember& leader) { move(leader); }),
                  killed_but({.name = "two killed"}, all, 1),
                  of_all({.name = "all restarted"}, [all](Random&) {
                    for (const auto* member : all) member->check_answers();
                    for (auto* member : all) member->take_down();
                    for (auto* member : all) member->bring_back();
                    for (const auto* member : all) member->wait();
                  })});
    if (network_) append(list, partitions(all));
    append(list, passage_faults(passages));
    list.push_back(busy_processors());
    // One of them is the leader, see above.
    list.push_back(flapping(all, {.voids = true}));
    list.push_back(one_of<EtcdMember>(
        {.name = "a member replaced"}, members,
        [this](EtcdMember& member, Random&) {
          for (const auto& each : members_) each->check_answers();
          if (&leader() == &member) move(member);
          replacement_->remove(member);
        },
        [this](EtcdMember&) { replacement_->add_again(); }));
    return list;
  }

 private:
  [[nodiscard]] EtcdMembers members() const {
    EtcdMembers list;
    for (const auto& member : members_) list.push_back(member.get());
    return list;
  }
  static std::string field(const EtcdMember& member, const std::string& name) {
    const auto text = member.tell({"endpoint", "status", "-w", "fields"});
    const auto key = "\"" + name + "\" : ";
    const auto at = text.find(key);
    if (at == std::string::npos) return "";
    const auto from = at + key.size();
    return text.substr(from, text.find('\n', from) - from);
  }
  [[nodiscard]] EtcdMember& leader() const {
    for (const auto& member : members_) {
      if (!member->answers()) continue;
      const auto own = field(*member, "MemberID");
      if (!own.empty() && own == field(*member, "Leader")) return *member;
    }
    throw std::runtime_error("there is no leader");
  }
  void move(const EtcdMember& leader) const {
    for (const auto& member : members_) {
      if (member.get() == &leader) continue;
      // In hexadecimal digits, where the fields have decimal ones.
      std::ostringstream id;
      id << std::hex << std::stoull(field(*member, "MemberID"));
      leader.tell({"move-leader", id.str()});
      return;
    }
  }

  Fault on_leader(
      Nature nature, std::function<void(EtcdMember&)> begin,
      std::function<void(EtcdMember&)> heal = [](EtcdMember&) {}) {
    return of_found<EtcdMember>(
        std::move(nature), [this]() -> EtcdMember& { return leader(); }, std::move(begin),
        std::move(heal));
  }

  std::vector<Fault> partitions(const Members& members) {
    using Way = Partitions::Way;
    const Partitions partitions(*network_, members);
    auto list = partitions.faults("member");
    list.push_back(on_leader(
        {.name = "leader in a partition"},
        [=](EtcdMember& leader) { partitions.begin(leader, Way::both); },
        [=](EtcdMember& leader) { partitions.heal(leader, Way::both); }));
    return list;
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<EtcdCluster> cluster_;
  std::vector<std::unique_ptr<EtcdMember>> members_;
  std::vector<std::unique_ptr<Passage>> passages_;
  std::unique_ptr<EtcdReplacement> replacement_;
};

}  // namespace

Kinds etcd_cluster_kinds() { return {kind<ThreeEtcds>("etcd3")}; }

}  // namespace torture
