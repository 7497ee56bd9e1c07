#include "conformance/suite.hpp"
#include "servers/etcd_server.hpp"

namespace interlock::conformance {
namespace {

// Servers are started once for all tests of a process, and every test has a prefix of its own.
template <class Servers>
Servers& shared() {
  static Servers servers;
  return servers;
}

class EtcdFixture : public StoreFixture {
 public:
  explicit EtcdFixture(std::string url) : url_(std::move(url)) {
    url_ += (url_.find('?') == std::string::npos ? "?" : "&") + std::string("prefix=t") +
            Owner::random().brief() + "/";
  }
  std::unique_ptr<Backend> open() override { return stores::open(url_); }

 private:
  std::string url_;
};

class OneMember final : public EtcdFixture {
 public:
  OneMember() : EtcdFixture(shared<servers::EtcdServer>().url()) {}
  void restart() override { shared<servers::EtcdServer>().restart(); }
};

class WithTls final : public EtcdFixture {
 public:
  WithTls() : EtcdFixture(shared<servers::TlsEtcdServer>().url()) {}
};

class ThreeMembers final : public EtcdFixture {
 public:
  ThreeMembers() : EtcdFixture(shared<servers::EtcdCluster>().url()) {}
};

[[maybe_unused]] const bool kOne = add_store<OneMember>("etcd");
[[maybe_unused]] const bool kTls = add_store<WithTls>("etcd_tls");
[[maybe_unused]] const bool kThree = add_store<ThreeMembers>("etcd_three");

}  // namespace
}  // namespace interlock::conformance
