// Real etcd servers for tests: one, one with TLS and users, or a cluster of three.
#pragma once

#include <fstream>
#include <memory>
#include <optional>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "servers/certificates.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

/// One member. Alone, or of a cluster that somebody else has put together.
class EtcdServer {
 public:
  EtcdServer() { start(); }
  /// `options` may refer to the ports, which stay the same.
  struct Plan {
    std::string name = "default";
    int port = 0;
    int peer_port = 0;
    std::string scheme = "http";
    std::vector<std::string> options{};
    /// Where it listens, and a program to run it under: a network of its own.
    std::string host = "127.0.0.1";
    std::vector<std::string> under{};
  };
  explicit EtcdServer(Plan plan) : plan_(std::move(plan)) { launch(); }

  [[nodiscard]] int port() const noexcept { return plan_.port; }
  [[nodiscard]] std::string address() const {
    return plan_.host + ":" + std::to_string(plan_.port);
  }
  [[nodiscard]] std::string url() const { return "etcd://" + address(); }
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] std::string log() const { return (directory_.path() / "log").string(); }

  /// etcdctl WORDS…; what it printed.
  std::string ctl(std::vector<std::string> words, const std::string& input = "") const {
    std::vector<std::string> all{"env",
                                 "ETCDCTL_API=3",
                                 "etcdctl",
                                 "--endpoints",
                                 plan_.scheme + "://" + address(),
                                 "--command-timeout=10s"};
    if (!input.empty()) {
      const auto file = (directory_.path() / "input").string();
      std::ofstream(file) << input;
      all.insert(all.begin(), {"sh", "-c", "exec \"$@\" <" + file, "sh"});
    }
    all.insert(all.end(), words.begin(), words.end());
    return output_of(std::move(all));
  }
  /// What etcd answers to this, sent to its JSON gateway; without TLS.
  std::string post(const std::string& path, const std::string& body) const {
    const auto request = "POST " + path +
                         " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
                         "\r\n\r\n" + body;
    return output_of({"timeout", "10", "bash", "-c",
                      "exec 3<>/dev/tcp/$0/$1; printf %s \"$2\" >&3; cat <&3", plan_.host,
                      std::to_string(plan_.port), request});
  }

  void stop(int signal = SIGKILL) { process_->end(signal); }
  /// With the data and the ports that it had.
  void restart(int signal = SIGTERM) {
    stop(signal);
    launch();
    wait();
  }
  /// Comes back with nothing.
  void lose_data() {
    stop(SIGKILL);
    std::filesystem::remove_all(directory_.path() / "data");
    launch();
    wait();
  }
  /// Joins a cluster that has added it, with nothing that it had before.
  void join() {
    std::filesystem::remove_all(directory_.path() / "data");
    launch({"--initial-cluster-state", "existing"});
  }
  [[nodiscard]] const std::string& name() const noexcept { return plan_.name; }
  [[nodiscard]] std::string peer_url() const {
    return "http://" + plan_.host + ":" + std::to_string(plan_.peer_port);
  }
  void launch(const std::vector<std::string>& more_options = {}) {
    const auto own = plan_.scheme + "://" + address();
    const auto peer = peer_url();
    std::vector<std::string> words{"etcd",
                                   "--name",
                                   plan_.name,
                                   "--data-dir",
                                   (directory_.path() / "data").string(),
                                   "--listen-client-urls",
                                   own,
                                   "--advertise-client-urls",
                                   own,
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer};
    if (plan_.options.empty()) {
      words.insert(words.end(), {"--initial-cluster", plan_.name + "=" + peer});
    }
    words.insert(words.end(), plan_.options.begin(), plan_.options.end());
    words.insert(words.end(), more_options.begin(), more_options.end());
    words.insert(words.begin(), plan_.under.begin(), plan_.under.end());
    process_.emplace(std::move(words), log());
  }
  /// Until it serves clients.
  void wait() {
    if (!testing_support::eventually([&] { return process_->over() || accepts(); }) ||
        process_->over())
      throw std::runtime_error("etcd does not start; see " + log());
  }

 private:
  void start() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      plan_.port = free_port();
      plan_.peer_port = free_port();
      launch();
      if (testing_support::eventually([&] { return process_->over() || listens(plan_.port); }) &&
          !process_->over())
        return;
      std::filesystem::remove_all(directory_.path() / "data");
    }
    throw std::runtime_error("etcd does not start; see " + log());
  }

  [[nodiscard]] bool accepts() const {
    if (plan_.under.empty()) return listens(plan_.port);
    std::vector<std::string> words{"timeout",
                                   "2",
                                   "bash",
                                   "-c",
                                   "exec 3<>/dev/tcp/$0/$1",
                                   plan_.host,
                                   std::to_string(plan_.port)};
    words.insert(words.begin(), plan_.under.begin(), plan_.under.end());
    return run(std::move(words), (directory_.path() / "accepts").string()) == 0;
  }
  std::string output_of(std::vector<std::string> words) const {
    words.insert(words.begin(), plan_.under.begin(), plan_.under.end());
    // Several threads may ask at once.
    const auto output = (directory_.path() / ("output-" + std::to_string(::gettid()))).string();
    std::filesystem::remove(output);
    (void)run(std::move(words), output);
    std::ifstream text(output);
    return {std::istreambuf_iterator<char>(text), {}};
  }

  TemporaryDirectory directory_;
  Plan plan_;
  std::optional<Process> process_;
};

/// Wants TLS and a client's certificate, and a user with a password.
class TlsEtcdServer {
 public:
  TlsEtcdServer() {
    const int port = free_port();
    const int peer_port = free_port();
    server_ = std::make_unique<EtcdServer>(EtcdServer::Plan{
        .name = "tls",
        .port = port,
        .peer_port = peer_port,
        .scheme = "https",
        .options = {"--initial-cluster", "tls=http://127.0.0.1:" + std::to_string(peer_port),
                    "--cert-file", certificates_.file("server.crt"), "--key-file",
                    certificates_.file("server.key"), "--trusted-ca-file",
                    certificates_.file("ca.crt"), "--client-cert-auth", "--bcrypt-cost", "4"}});
    server_->wait();
    ctl({"user", "add", "root:root"});
    ctl({"role", "add", "locker"});
    ctl({"role", "grant-permission", "--prefix=true", "locker", "readwrite", "interlock/"});
    ctl({"role", "grant-permission", "--prefix=true", "locker", "readwrite", "t"});
    ctl({"user", "add", "locks:p@ss/word"});
    ctl({"user", "grant-role", "locks", "locker"});
    ctl({"user", "grant-role", "root", "root"});
    ctl({"auth", "enable"});
  }
  std::string ctl(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"--cacert", certificates_.file("ca.crt"), "--cert",
                  certificates_.file("client.crt"), "--key", certificates_.file("client.key")});
    return server_->ctl(std::move(words));
  }
  [[nodiscard]] std::string url(const std::string& login = "locks:p%40ss%2Fword@") const {
    return "etcds://" + login + server_->address() + "?ca=" + certificates_.file("ca.crt") +
           "&cert=" + certificates_.file("client.crt") + "&key=" + certificates_.file("client.key");
  }
  [[nodiscard]] const Certificates& certificates() const { return certificates_; }
  [[nodiscard]] EtcdServer& server() { return *server_; }

 private:
  Certificates certificates_;
  std::unique_ptr<EtcdServer> server_;
};

/// Three members that elect a leader within a second or so.
class EtcdCluster {
 public:
  /// Where a member listens, and a program to run it under: a network of its own.
  struct Place {
    std::string host = "127.0.0.1";
    std::vector<std::string> under{};
  };
  /// Without places, all are here.
  explicit EtcdCluster(std::vector<Place> places = {}) {
    places.resize(3);
    std::vector<EtcdServer::Plan> plans;
    std::string all;
    for (const auto& place : places) {
      plans.push_back({.name = "m" + std::to_string(plans.size()),
                       .port = free_port(),
                       .peer_port = free_port(),
                       .host = place.host,
                       .under = place.under});
      all += (all.empty() ? "" : ",") + plans.back().name + "=http://" + place.host + ":" +
             std::to_string(plans.back().peer_port);
    }
    for (auto& plan : plans) {
      plan.options = {"--initial-cluster",  all,   "--heartbeat-interval", "100",
                      "--election-timeout", "1000"};
      members_.push_back(std::make_unique<EtcdServer>(std::move(plan)));
    }
    for (auto& member : members_) member->wait();
    if (leader() == nullptr) throw std::runtime_error("the members elect no leader");
  }
  [[nodiscard]] std::string url() const {
    std::string hosts;
    for (const auto& member : members_) hosts += (hosts.empty() ? "" : ",") + member->address();
    return "etcd://" + hosts;
  }
  [[nodiscard]] std::vector<std::unique_ptr<EtcdServer>>& members() { return members_; }
  /// Whoever says that it is.
  [[nodiscard]] EtcdServer* leader() {
    EtcdServer* found = nullptr;
    (void)testing_support::eventually([&] {
      for (const auto& member : members_) {
        if (member->process().over()) continue;
        if (member->ctl({"endpoint", "status", "-w", "fields"}).find("\"Leader\"") ==
            std::string::npos)
          continue;
        const auto text = member->ctl({"endpoint", "status", "-w", "fields"});
        const auto field = [&](const std::string& name) {
          const auto at = text.find("\"" + name + "\" : ");
          return at == std::string::npos ? std::string()
                                         : text.substr(at + name.size() + 5,
                                                       text.find('\n', at) - at - name.size() - 5);
        };
        if (!field("MemberID").empty() && field("MemberID") == field("Leader"))
          found = member.get();
      }
      return found != nullptr;
    });
    return found;
  }

 private:
  std::vector<std::unique_ptr<EtcdServer>> members_;
};

}  // namespace interlock::servers
