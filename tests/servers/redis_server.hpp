// Real Redis servers for tests: one, with TLS, watched by sentinels, or a cluster of six.
#pragma once

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "servers/certificates.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

class RedisServer {
 public:
  /// `under`: a program to run it under. `host`: where it listens, which may be in another network.
  explicit RedisServer(std::vector<std::string> options = {}, std::string program = "redis-server",
                       std::vector<std::string> under = {}, std::string host = kHere)
      : options_(std::move(options)),
        program_(std::move(program)),
        under_(std::move(under)),
        host_(std::move(host)) {
    start();
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return host_ + ":" + std::to_string(port_); }
  [[nodiscard]] std::string url() const { return "redis://" + address(); }
  [[nodiscard]] std::string socket() const { return (directory_.path() / "socket").string(); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }
  [[nodiscard]] Process& process() { return *process_; }

  /// redis-cli WORDS…; what it printed.
  std::string cli(std::vector<std::string> words) const {
    const auto output = (directory_.path() / "cli").string();
    std::filesystem::remove(output);
    const bool here = host_ == kHere;
    words.insert(words.begin(), {here ? "-p" : "-s", here ? std::to_string(port_) : socket()});
    // A server that is stopped would never answer.
    words.insert(words.begin(), {"timeout", "20", "redis-cli"});
    (void)run(std::move(words), output);
    std::ifstream file(output);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// All that was written so far has reached so many replicas. (WAIT would only tell of what its own
  /// connection wrote.)
  [[nodiscard]] bool is_copied_to(int replicas) const {
    std::istringstream lines(cli({"INFO", "replication"}));
    const auto number_after = [](const std::string& line, const std::string& word) {
      const auto at = line.find(word);
      return at == std::string::npos ? -1 : std::stoll(line.substr(at + word.size()));
    };
    std::vector<long long> copied;
    long long written = -1;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("state=online") != std::string::npos)
        copied.push_back(number_after(line, ",offset="));
      if (line.starts_with("master_repl_offset:")) written = number_after(line, ":");
    }
    return written >= 0 && std::count_if(copied.begin(), copied.end(), [&](long long offset) {
                             return offset >= written;
                           }) >= replicas;
  }

  void stop(int signal = SIGKILL) { process_->end(signal); }
  /// On the same port, once it had one.
  void start() {
    const auto log = (directory_.path() / "log").string();
    const bool fixed = port_ != 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
      if (!fixed) port_ = free_port();
      std::vector<std::string> words{program_};
      if (program_ == "redis-server") {
        words.insert(words.end(), {"--port", std::to_string(port_), "--bind", host_, "--save", "",
                                   "--dir", directory_.path().string(), "--unixsocket", socket()});
        // In a network of the tests' own.
        if (host_ != kHere) words.insert(words.end(), {"--protected-mode", "no"});
        words.insert(words.end(), options_.begin(), options_.end());
      } else {
        words.push_back(sentinel_file(fixed));
      }
      words.insert(words.begin(), under_.begin(), under_.end());
      process_.emplace(std::move(words), log);
      if (testing_support::eventually([&] { return process_->over() || serves(); }) &&
          !process_->over()) {
        return;
      }
    }
    throw std::runtime_error("redis-server does not start; see " + log);
  }
  void restart() {
    stop(SIGTERM);
    start();
  }
  /// A setting, from now on and also after the next start.
  void set(const std::string& name, const std::string& value) {
    options_.insert(options_.end(), {"--" + name, value});
    cli({"CONFIG", "SET", name, value});
  }
  /// What it would find at its next start. It has to be stopped.
  void remove_data() const {
    for (const auto* name : {"appendonlydir", "dump.rdb"})
      std::filesystem::remove_all(directory_.path() / name);
  }

 private:
  static constexpr auto kHere = "127.0.0.1";

  [[nodiscard]] bool serves() const {
    return host_ == kHere ? listens(port_) : cli({"PING"}).starts_with("PONG");
  }
  // It keeps its memory in its configuration.
  [[nodiscard]] std::string sentinel_file(bool again) const {
    const auto path = directory_.path() / "sentinel.conf";
    if (again) return path.string();
    std::ofstream file(path);
    file << "port " << port_ << "\nbind 127.0.0.1\ndir " << directory_.path().string() << "\n";
    for (const auto& line : options_) file << line << "\n";
    return path.string();
  }

  TemporaryDirectory directory_;
  std::vector<std::string> options_;
  std::string program_;
  std::vector<std::string> under_;
  std::string host_;
  int port_ = 0;
  std::optional<Process> process_;
};

/// A server that wants TLS, and a client's certificate.
class TlsRedisServer {
 public:
  explicit TlsRedisServer(std::vector<std::string> options = {}) {
    tls_port_ = free_port();
    options.insert(options.end(),
                   {"--tls-port", std::to_string(tls_port_), "--tls-cert-file", file("server.crt"),
                    "--tls-key-file", file("server.key"), "--tls-ca-cert-file", file("ca.crt")});
    server_ = std::make_unique<RedisServer>(std::move(options));
  }
  [[nodiscard]] std::string url() const { return url(tls_port_); }
  /// Through a proxy that listens there.
  [[nodiscard]] std::string url(int port) const {
    return "rediss://localhost:" + std::to_string(port) + "?ca=" + file("ca.crt") +
           "&cert=" + file("client.crt") + "&key=" + file("client.key");
  }
  [[nodiscard]] int tls_port() const noexcept { return tls_port_; }
  [[nodiscard]] std::string file(const std::string& name) const { return certificates_.file(name); }
  [[nodiscard]] RedisServer& server() { return *server_; }

 private:
  Certificates certificates_;
  int tls_port_ = 0;
  std::unique_ptr<RedisServer> server_;
};

/// Where others are to find a server: at its own port, or at that of a proxy before it.
using Announced = std::function<int(RedisServer&)>;

/// A master with replicas, and three sentinels that watch it as "main".
class SentinelGroup {
 public:
  explicit SentinelGroup(
      int replicas = 1, std::vector<std::string> options = {},
      const Announced& announced = [](RedisServer& server) { return server.port(); }) {
    options.insert(options.end(), {"--repl-diskless-sync-delay", "0"});
    std::string master;
    for (int i = 0; i <= replicas; ++i) {
      servers_.push_back(std::make_unique<RedisServer>(options));
      ports_.push_back(std::to_string(announced(*servers_.back())));
      servers_.back()->set("replica-announce-port", ports_.back());
      if (i == 0) master = ports_.back();
      if (i > 0) servers_.back()->cli({"REPLICAOF", "127.0.0.1", master});
    }
    for (int i = 0; i < 3; ++i) {
      sentinels_.push_back(std::make_unique<RedisServer>(
          std::vector<std::string>{"sentinel monitor main 127.0.0.1 " + master + " 2",
                                   "sentinel down-after-milliseconds main 500",
                                   "sentinel failover-timeout main 5000",
                                   "sentinel parallel-syncs main 1"},
          "redis-sentinel"));
    }
    // Each has to know the others and the replicas before it can do anything.
    const auto knows = [&](const RedisServer& sentinel) {
      const auto text = sentinel.cli({"INFO", "sentinel"});
      return text.find("slaves=" + std::to_string(replicas) + ",sentinels=3") != std::string::npos;
    };
    if (!testing_support::eventually([&] { return servers_[0]->is_copied_to(replicas); })) {
      throw std::runtime_error("the replicas don't follow");
    }
    for (const auto& sentinel : sentinels_) {
      if (!testing_support::eventually([&] { return knows(*sentinel); }))
        throw std::runtime_error("the sentinels don't find each other");
    }
  }
  [[nodiscard]] std::string url() const {
    std::string hosts;
    for (const auto& sentinel : sentinels_)
      hosts += (hosts.empty() ? "" : ",") + sentinel->address();
    return "redis+sentinel://" + hosts + "/main";
  }
  [[nodiscard]] RedisServer& master() {
    const auto port = sentinels_[0]->cli({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"});
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (port.find(ports_[i]) != std::string::npos) return *servers_[i];
    }
    throw std::runtime_error("no master");
  }
  [[nodiscard]] std::vector<std::unique_ptr<RedisServer>>& servers() { return servers_; }
  [[nodiscard]] std::vector<std::unique_ptr<RedisServer>>& sentinels() { return sentinels_; }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::string> ports_;  ///< as announced
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

/// Three masters with a replica each.
class RedisCluster {
 public:
  explicit RedisCluster(
      const std::vector<std::string>& more_options = {},
      const Announced& announced = [](RedisServer& server) { return server.port(); }) {
    std::vector<std::string> words{"redis-cli", "--cluster", "create"};
    for (int i = 0; i < 6; ++i) {
      std::vector<std::string> options{"--cluster-enabled",
                                       "yes",
                                       "--cluster-node-timeout",
                                       "1000",
                                       "--cluster-port",
                                       std::to_string(free_port()),
                                       "--repl-diskless-sync-delay",
                                       "0"};
      options.insert(options.end(), more_options.begin(), more_options.end());
      nodes_.push_back(std::make_unique<RedisServer>(std::move(options)));
      const auto port = std::to_string(announced(*nodes_.back()));
      nodes_.back()->set("cluster-announce-port", port);
      words.push_back("127.0.0.1:" + port);
    }
    words.insert(words.end(), {"--cluster-replicas", "1", "--cluster-yes"});
    const auto log = (nodes_[0]->directory() / "create").string();
    if (run(std::move(words), log) != 0)
      throw std::runtime_error("no cluster could be made; see " + log);
    for (const auto& node : nodes_) {
      if (!testing_support::eventually([&] {
            return node->cli({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
          })) {
        throw std::runtime_error("the cluster does not come up");
      }
    }
  }
  [[nodiscard]] std::string url() const {
    return "redis+cluster://" + nodes_[0]->address() + "," + nodes_[1]->address();
  }
  [[nodiscard]] std::vector<std::unique_ptr<RedisServer>>& nodes() { return nodes_; }

 private:
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace interlock::servers
