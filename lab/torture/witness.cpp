#include "witness.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "interlock/client.hpp"
#include "spawn.hpp"

namespace torture {

namespace {

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr std::int64_t kLate = 50'000'000;
constexpr auto kBetweenRoles = std::chrono::milliseconds(100);
// Above the numbers of the faults that are ordered.
constexpr int kFirstFailover = 10'000;

// What ROLE says; nothing if the server does not answer soon.
std::optional<bool> is_master(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  const timeval soon{.tv_sec = 0, .tv_usec = 100'000};
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  constexpr std::string_view kAsk = "ROLE\r\n";
  // "*3\r\n$6\r\nmaster\r\n…" comes in one piece.
  std::array<char, 64> answer{};
  ssize_t got = 0;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::send(fd, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kAsk.size()))
    got = ::recv(fd, answer.data(), answer.size(), 0);
  ::close(fd);
  const std::string_view text(answer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (text.find("\r\nmaster\r\n") != std::string_view::npos) return true;
  if (text.find("\r\nslave\r\n") != std::string_view::npos) return false;
  return std::nullopt;
}

}  // namespace

Witness::Witness(const std::filesystem::path& directory, const Log& log)
    : log_(log),
      file_(::open((directory / "witness").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for the witness");
  echo_ = spawn({.program = "cat", .words = {"cat"}, .input = to[0], .output = from[1]});
  ::close(to[0]);
  ::close(from[1]);
  asks_ = to[1];
  hears_ = from[0];
  if (echo_ == 0) throw std::runtime_error("the witness can't be started");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Witness::~Witness() {
  thread_.request_stop();
  thread_.join();
  ::close(asks_);  // and cat ends
  ::waitpid(echo_, nullptr, 0);
  ::close(hears_);
  ::close(file_);
}

void Witness::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto from = now();
    char byte = '.';
    if (::write(asks_, &byte, 1) != 1 || ::read(hears_, &byte, 1) != 1) return;
    if (::pwrite(file_, &byte, 1, 0) == 1) (void)::fdatasync(file_);
    std::this_thread::sleep_for(kPause);
    if (now() - from > kLate) log_.add("stall", {{"from", from}});
  }
}

StoreWitness::StoreWitness(std::string url, std::string name, const Log& log)
    : url_(std::move(url)),
      name_(std::move(name)),
      log_(log),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void StoreWitness::run(const std::stop_token& stop) const {
  std::optional<interlock::Client> client;
  while (!stop.stop_requested()) {
    const auto from = now();
    try {
      if (!client) client = interlock::connect(url_);
      (void)client->inspect({.resources = {name_}});
    } catch (const interlock::Error&) {
      // Late or refused: how long it took is what counts.
    }
    std::this_thread::sleep_for(kPause);
    if (now() - from > kLate) log_.add("stall", {{"from", from}});
  }
}

FailoverWitness::FailoverWitness(const std::vector<int>& ports, const Log& log) : log_(log) {
  for (const int port : ports) servers_.push_back({.port = port});
  if (!servers_.empty()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void FailoverWitness::run(const std::stop_token& stop) {
  int number = kFirstFailover;
  for (auto before = now(); !stop.stop_requested(); std::this_thread::sleep_for(kBetweenRoles)) {
    const auto from = now();
    bool took_over = false;
    for (auto& server : servers_) {
      const auto role = is_master(server.port);
      if (!role) continue;
      took_over = took_over || (*role && server.was_master == false);
      server.was_master = role;
    }
    if (took_over) {
      log_.add("fault", {{"n", ++number},
                         {"from", before},
                         {"name", "a failover that was seen"},
                         {"voids", true},
                         {"disturbs", true},
                         {"brings_back", true}});
      log_.add("healed", {{"n", number}});
    }
    before = from;
  }
}

}  // namespace torture
