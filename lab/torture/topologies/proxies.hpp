// What goes wrong between clients and servers.
#pragma once

#include <array>
#include <string>

#include "servers/proxy.hpp"
#include "torture/topologies/member.hpp"

namespace torture {

/// A proxy before a server. Faults may overlap: each takes back only its own.
class Passage {
 public:
  using Proxy = interlock::servers::Proxy;

  Passage(std::string name, int server_port, std::string server_host = "127.0.0.1",
          Proxy::Reach reach = {})
      : name_(std::move(name)), proxy_(server_port, std::move(server_host), std::move(reach)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int port() const noexcept { return proxy_.port(); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }

  void cut() { proxy_.cut(); }
  void lead_to(int server_port) { proxy_.lead_to(server_port); }
  void stall(Proxy::Way way, int by);
  /// More or less of one kind of bad weather.
  void change(double Proxy::Weather::*kind, double by, std::uint64_t seed);

 private:
  void apply();

  std::string name_;
  Proxy proxy_;
  Proxy::Weather weather_{};
  std::array<int, 2> stalls_{};
};

using Passages = std::vector<Passage*>;

/// Which of them the store's promise does not survive.
struct PassageVoids {
  bool cuts = false;    ///< what a client holds is free as soon as its connection ends
  bool delays = false;  ///< servers that don't hear from each other fail over
  /// A second copy of an acquire, which comes after the release, is carried out. It frees itself when its TTL ends.
  bool copies_bring_back = false;
};
std::vector<Fault> passage_faults(const Passages& passages, PassageVoids voids = {});
/// Many requests are delivered late, and all of them to the same server.
Fault late_on_one(const Passages& passages);

}  // namespace torture
