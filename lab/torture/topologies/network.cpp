#include "torture/topologies/network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "eventually.hpp"

namespace torture {

namespace {

std::string own_network() { return std::filesystem::read_symlink("/proc/thread-self/ns/net"); }

}  // namespace

Network::Network(int places) : router_(new_namespace()) {
  command(*router_, {"ip", "link", "set", "lo", "up"});
  command(*router_, {"sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"});
  for (int i = 0; i < places; ++i) {
    places_.push_back(new_namespace());
    const auto& place = *places_.back();
    const auto net = "10.77." + std::to_string(i) + ".";
    const auto leg = "leg" + std::to_string(i);
    command(*router_, {"ip", "link", "add", leg, "type", "veth", "peer", "name", "eth", "netns",
                       std::to_string(place.pid())});
    command(*router_, {"ip", "addr", "add", net + "1/24", "dev", leg});
    command(*router_, {"ip", "link", "set", leg, "up"});
    command(place, {"ip", "link", "set", "lo", "up"});
    command(place, {"ip", "addr", "add", address(i) + "/24", "dev", "eth"});
    command(place, {"ip", "link", "set", "eth", "up"});
    command(place, {"ip", "route", "add", "default", "via", net + "1"});
  }
}

bool Network::permitted() {
  static const bool yes = [] {
    try {
      const Network tried(1);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return yes;
}

std::string Network::address(int place) const { return "10.77." + std::to_string(place) + ".2"; }

std::vector<std::string> Network::under(int place) const {
  return inside(*places_.at(static_cast<std::size_t>(place)), {});
}

int Network::socket_at(int place) const {
  const auto there =
      "/proc/" + std::to_string(places_.at(static_cast<std::size_t>(place))->pid()) + "/ns/net";
  const int home = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  const int target = ::open(there.c_str(), O_RDONLY | O_CLOEXEC);
  int made = -1;
  if (::setns(target, CLONE_NEWNET) == 0) {
    made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::setns(home, CLONE_NEWNET) != 0) std::abort();
  }
  ::close(target);
  ::close(home);
  return made;
}

std::unique_ptr<Network::Process> Network::new_namespace() {
  auto holder = std::make_unique<Process>(
      std::vector<std::string>{"unshare", "--net", "sleep", "infinity"}, "/dev/null");
  const auto path = "/proc/" + std::to_string(holder->pid()) + "/ns/net";
  const auto home = own_network();
  if (!interlock::testing_support::eventually([&] {
        std::error_code error;
        const auto network = std::filesystem::read_symlink(path, error);
        return holder->over() || (!error && network != home);
      }) ||
      holder->over())
    throw std::runtime_error("a network namespace can't be made");
  return holder;
}

std::vector<std::string> Network::inside(const Process& holder, std::vector<std::string> words) {
  words.insert(words.begin(), {"nsenter", "-t", std::to_string(holder.pid()), "-n"});
  return words;
}

void Network::lose(int from, int to) {
  if (losses_[{from, to}]++ == 0) rule("add", from, to);
}

void Network::pass(int from, int to) {
  if (--losses_[{from, to}] == 0) rule("del", from, to);
}

// What is lost is looked up before any route. Only what the router passes on is looked at, and that is everything.
void Network::rule(const std::string& what, int from, int to) {
  command(*router_, {"ip", "rule", what, "pref", std::to_string(1000 + 100 * from + to), "from",
                     address(from), "to", address(to), "blackhole"});
}

void Network::command(const Process& where, std::vector<std::string> words) const {
  const auto output = (directory_.path() / "output").string();
  std::filesystem::remove(output);
  auto text = words.front() + " " + words.at(1);
  if (interlock::servers::run(inside(where, std::move(words)), output) == 0) return;
  std::ifstream file(output);
  throw std::runtime_error(text + ": " + std::string(std::istreambuf_iterator<char>(file), {}));
}

template <class Change>
void Partitions::each(const Member& member, Way way, Change change) const {
  const auto found = std::find(members_.begin(), members_.end(), &member);
  const auto own = static_cast<int>(found - members_.begin());
  for (int other = 0; other <= static_cast<int>(members_.size()); ++other) {
    if (other == own) continue;
    if (way != Way::to) change(own, other);
    if (way != Way::from) change(other, own);
  }
}

void Partitions::begin(const Member& member, Way way) const {
  each(member, way, [this](int from, int to) { network_->lose(from, to); });
}

void Partitions::heal(const Member& member, Way way) const {
  each(member, way, [this](int from, int to) { network_->pass(from, to); });
}

std::vector<Fault> Partitions::faults(const std::string& what) const {
  const auto fault = [this](std::string name, Way way) {
    return one_of<Member>(
        {.name = std::move(name)}, members_,
        [partitions = *this, way](Member& member, Random&) { partitions.begin(member, way); },
        [partitions = *this, way](Member& member) { partitions.heal(member, way); });
  };
  return {fault("a " + what + " in a partition", Way::both),
          fault("a " + what + " not heard", Way::from),
          fault("a " + what + " does not hear", Way::to)};
}

}  // namespace torture
