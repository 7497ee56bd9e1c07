// What stores that are somewhere else have in common in their URLs. All of it throws Error (invalid).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::core {

[[noreturn]] void refuse_url(const std::string& why);

/// The password: the URL's own, or where `password-file=` or `password-env=` say, which is neither in
/// `ps` nor in a shell's history. `warnings`: as for `take_file`.
std::string take_password(Url& url, std::vector<std::string>& warnings);

/// What `timeout=` says, or this.
Duration take_timeout(Url& url, Duration otherwise);

/// What stands between the commas: the hosts of an authority.
std::vector<std::string_view> split_hosts(std::string_view text);

}  // namespace interlock::core
