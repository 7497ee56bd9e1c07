// Whether what is sent to a host can be read on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::core {

/// Nobody else is on the way to it: a Unix socket's path, "localhost", ::1, or an address in 127.0.0.0/8. A name that
/// happens to lead to this machine is not, as it may lead elsewhere tomorrow.
bool is_this_machine(std::string_view host);

/// A warning for people if a password goes to one of these hosts without TLS. `scheme`: the one to use instead.
std::optional<std::string> readable_password(const std::vector<std::string>& hosts,
                                             const std::string& scheme);

}  // namespace interlock::core
