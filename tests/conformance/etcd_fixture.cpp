#include "conformance/served.hpp"
#include "servers/etcd_server.hpp"

namespace interlock::conformance {
namespace {

class OneMember final : public ServedFixture {
 public:
  OneMember() : ServedFixture(shared<servers::EtcdServer>().url()) {}
  void restart() override { shared<servers::EtcdServer>().restart(); }
};

class WithTls final : public ServedFixture {
 public:
  WithTls() : ServedFixture(shared<servers::TlsEtcdServer>().url()) {}
};

class ThreeMembers final : public ServedFixture {
 public:
  ThreeMembers() : ServedFixture(shared<servers::EtcdCluster>().url()) {}
};

[[maybe_unused]] const bool kOne = add_store<OneMember>("etcd");
[[maybe_unused]] const bool kTls = add_store<WithTls>("etcd_tls");
[[maybe_unused]] const bool kThree = add_store<ThreeMembers>("etcd_three");

}  // namespace
}  // namespace interlock::conformance
