// Three members of etcd, each in a network of its own if this machine permits that.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "torture/topologies/etcd_member.hpp"
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
  }

  [[nodiscard]] std::string url() const override {
    std::string hosts;
    for (const auto& passage : passages_) hosts += (hosts.empty() ? "" : ",") + passage->address();
    return "etcd://" + hosts;
  }
  [[nodiscard]] Promise promise() const override { return etcd_promise(); }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    if (network_) return {};
    return {"partitions: only root may make network namespaces, with unshare, nsenter and ip"};
  }

  std::vector<Fault> faults() override {
    EtcdMembers members;
    Passages passages;
    for (const auto& member : members_) members.push_back(member.get());
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
    if (network_) append(list, partitions(members));
    append(list, passage_faults(passages));
    list.push_back(busy_processors());
    return list;
  }

 private:
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

  /// Packets of one member get lost, those from it, those to it, or both.
  std::vector<Fault> partitions(const EtcdMembers& members) {
    const auto place = [members](const EtcdMember& member) {
      return static_cast<int>(std::find(members.begin(), members.end(), &member) - members.begin());
    };
    const auto change = [this, place](const EtcdMember& member, bool lose, bool from, bool to) {
      const int own = place(member);
      for (int other = 0; other <= kClients; ++other) {
        if (other == own) continue;
        if (from) lose ? network_->lose(own, other) : network_->pass(own, other);
        if (to) lose ? network_->lose(other, own) : network_->pass(other, own);
      }
    };
    const auto partition = [&](std::string name, bool from, bool to) {
      return one_of<EtcdMember>(
          {.name = std::move(name)}, members,
          [=](EtcdMember& member, Random&) { change(member, true, from, to); },
          [=](EtcdMember& member) { change(member, false, from, to); });
    };
    return {partition("a member in a partition", true, true),
            partition("a member not heard", true, false),
            partition("a member does not hear", false, true),
            on_leader(
                {.name = "leader in a partition"},
                [=](EtcdMember& leader) { change(leader, true, true, true); },
                [=](EtcdMember& leader) { change(leader, false, true, true); })};
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<EtcdCluster> cluster_;
  std::vector<std::unique_ptr<EtcdMember>> members_;
  std::vector<std::unique_ptr<Passage>> passages_;
};

}  // namespace

Kinds etcd_cluster_kinds() { return {kind<ThreeEtcds>("etcd3")}; }

}  // namespace torture
