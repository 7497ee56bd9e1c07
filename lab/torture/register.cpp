#include "register.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <system_error>
#include <utility>
#include <vector>

namespace torture {

namespace {

sockaddr_un address_of(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int opened() {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("the register's socket");
  return fd;
}

std::optional<Json> receive(int fd) {
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto got = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (got <= 0) return std::nullopt;
  return Json::parse(buffer.data(), buffer.data() + got);
}

bool send(int fd, const Json& message) {
  const auto text = message.dump();
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

RegisterServer::RegisterServer(const std::filesystem::path& socket, const Log& log)
    : log_(log), listener_(opened()) {
  const auto address = address_of(socket);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_, 64) != 0)
    fail("the register can't listen");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

RegisterServer::~RegisterServer() {
  thread_.request_stop();
  thread_.join();
  ::close(listener_);
  for (const auto& [resource, number] : numbers_) {
    log_.add("register", {{"r", resource}, {"fenced", true}, {"value", number.fenced}});
    log_.add("register", {{"r", resource}, {"fenced", false}, {"value", number.bare}});
  }
}

void RegisterServer::run(const std::stop_token& stop) {
  std::vector<pollfd> fds{{.fd = listener_, .events = POLLIN, .revents = 0}};
  while (!stop.stop_requested()) {
    ::poll(fds.data(), fds.size(), 100);
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      const auto request = receive(fds[i].fd);
      if (request && send(fds[i].fd, answer(*request))) continue;
      ::close(std::exchange(fds[i].fd, -1));
    }
    std::erase_if(fds, [](const pollfd& fd) { return fd.fd < 0; });
    if (fds[0].revents == 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) fds.push_back({.fd = client, .events = POLLIN, .revents = 0});
  }
  for (std::size_t i = 1; i < fds.size(); ++i) ::close(fds[i].fd);
}

Json RegisterServer::answer(const Json& request) {
  auto& number = numbers_[request.at("r")];
  const bool fenced = request.at("fenced");
  auto& value = fenced ? number.fenced : number.bare;
  const bool in = !fenced || number.gate.admit(interlock::Fence{request.at("fence")},
                                               request.at("owner").get<std::string>());
  if (!request.contains("seen")) return in ? Json{{"value", value}} : Json{{"refused", true}};
  auto line = request;
  line["wrote"] = request.at("seen").get<std::uint64_t>() + 1;
  line["answer"] = in ? "yes" : "refused";
  if (in) value = line["wrote"];
  log_.add("writes", std::move(line));
  return {{"in", in}};
}

Register::Register(const std::filesystem::path& socket) : fd_(opened()) {
  const auto address = address_of(socket);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    fail("the register can't be reached");
}

Register::~Register() { ::close(fd_); }

Json Register::ask(const Json& request) const {
  if (!send(fd_, request)) fail("the register can't be reached");
  auto answer = receive(fd_);
  if (!answer) fail("the register does not answer");
  return *answer;
}

std::optional<std::uint64_t> Register::read(const std::string& resource, bool fenced,
                                            std::uint64_t fence, const std::string& owner) {
  const auto answer =
      ask({{"r", resource}, {"fenced", fenced}, {"fence", fence}, {"owner", owner}});
  if (!answer.contains("value")) return std::nullopt;
  return answer.at("value").get<std::uint64_t>();
}

bool Register::write(const std::string& resource, bool fenced, std::uint64_t fence,
                     const std::string& owner, std::uint64_t seen, const std::string& lease) {
  return ask({{"r", resource},
              {"fenced", fenced},
              {"fence", fence},
              {"owner", owner},
              {"seen", seen},
              {"lease", lease}})
      .at("in");
}

}  // namespace torture
