// The floor on etcd: a put and another one. It locks nothing.
#include "bench/bare/etcd.hpp"
#include "peer.hpp"

namespace peers {

namespace {

class BareKey final : public Lock {
 public:
  BareKey(bench::BareEtcd& server, std::string name) : server_(server), name_(std::move(name)) {}
  std::uint64_t take(bool /*shared*/) override {
    server_.put(name_);
    return 0;
  }
  void give() override { server_.put(name_); }

 private:
  bench::BareEtcd& server_;
  std::string name_;
};

class EtcdPeer final : public Peer {
 public:
  explicit EtcdPeer(const std::string& address) : server_(address) { server_.put("bare/check"); }

  [[nodiscard]] std::string version() const override { return "gRPC " + grpc::Version(); }
  [[nodiscard]] std::string settings() const override {
    return "one channel; two puts instead of a lock";
  }
  [[nodiscard]] std::string cannot(const Work& work) const override {
    return work.distinct && work.shared == 0 ? "" : "puts are no lock";
  }
  std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds /*ttl*/) override {
    return std::make_unique<BareKey>(server_, "bare/" + name);
  }

 private:
  bench::BareEtcd server_;
};

}  // namespace

std::unique_ptr<Peer> etcd_peer(const Addresses& addresses) {
  const auto& address = addresses.at(0);
  return std::make_unique<EtcdPeer>(address.substr(address.find("://") + 3));
}

}  // namespace peers
