#include "core/hosts.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace interlock::core {

bool is_this_machine(std::string_view host) {
  if (host.starts_with('/') || host == "localhost") return true;
  const std::string text(host);
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    constexpr std::uint32_t kLoopbackNet = 127;
    return ntohl(four.s_addr) >> 24U == kLoopbackNet;
  }
  in6_addr six{};
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 &&
         std::memcmp(&six, &in6addr_loopback, sizeof(six)) == 0;
}

std::optional<std::string> readable_password(const std::vector<std::string>& hosts,
                                             const std::string& scheme) {
  const auto other = std::find_if(hosts.begin(), hosts.end(),
                                  [](const std::string& host) { return !is_this_machine(host); });
  if (other == hosts.end()) return std::nullopt;
  return "the password goes to " + *other +
         " unencrypted, where others on the network could read it, and take the server's place: "
         "use " +
         scheme + "://";
}

}  // namespace interlock::core
