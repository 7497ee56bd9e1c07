// Network namespaces of our own: places that reach each other through a router that can lose packets, silently
// and one way. All of it goes with its processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "servers/process.hpp"
#include "torture/topologies/member.hpp"

namespace torture {

class Network {
 public:
  /// Throws std::runtime_error if this machine does not permit it.
  explicit Network(int places);
  [[nodiscard]] static bool permitted();
  /// What is left out then.
  static constexpr auto kNotPermitted =
      "partitions: only root may make network namespaces, with unshare, nsenter and ip";

  [[nodiscard]] std::string address(int place) const;
  /// What runs a program there.
  [[nodiscard]] std::vector<std::string> under(int place) const;
  /// A TCP socket that is there.
  [[nodiscard]] int socket_at(int place) const;

  /// Packets from here to there get lost, until there was a `pass` for each `lose`.
  void lose(int from, int to);
  void pass(int from, int to);

 private:
  using Process = interlock::servers::Process;

  static std::unique_ptr<Process> new_namespace();
  [[nodiscard]] static std::vector<std::string> inside(const Process& holder,
                                                       std::vector<std::string> words);
  void rule(const std::string& what, int from, int to);
  void command(const Process& where, std::vector<std::string> words) const;

  interlock::TemporaryDirectory directory_;
  std::unique_ptr<Process> router_;
  std::vector<std::unique_ptr<Process>> places_;
  std::map<std::pair<int, int>, int> losses_;
};

/// Members of a network, each at the place of its number, that can't be reached. The last place is that of the clients.
class Partitions {
 public:
  Partitions(Network& network, Members members)
      : network_(&network), members_(std::move(members)) {}

  /// What it says gets lost, what it is told, or both.
  enum class Way { from, to, both };
  void begin(const Member& member, Way way) const;
  void heal(const Member& member, Way way) const;
  /// `what` they are: "member".
  [[nodiscard]] std::vector<Fault> faults(const std::string& what) const;

 private:
  template <class Change>
  void each(const Member& member, Way way, Change change) const;

  Network* network_;
  Members members_;
};

}  // namespace torture
