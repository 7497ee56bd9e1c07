#include "core/settings.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/option_file.hpp"
#include "interlock/duration.hpp"

namespace interlock::core {

void refuse_url(const std::string& why) { throw Error(Errc::invalid, "the store's URL: " + why); }

std::string take_password(Url& url, std::vector<std::string>& warnings) {
  const bool in_file = url.query.contains("password-file") && !url.query["password-file"].empty();
  const auto variable = url.take("password-env");
  if ((url.password.empty() ? 0 : 1) + (in_file ? 1 : 0) + (variable.empty() ? 0 : 1) > 1)
    refuse_url("the password is given in more than one way");
  const auto text = take_file(url, "password-file", Secrecy::secret, warnings);
  if (in_file) {
    auto line = text.substr(0, text.find('\n'));
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  if (variable.empty()) return url.password;
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) refuse_url("password-env: the variable " + variable + " is not set");
  return value;
}

Duration take_timeout(Url& url, Duration otherwise) {
  const auto text = url.take("timeout");
  if (text.empty()) return otherwise;
  const auto timeout = [&] {
    try {
      return parse_duration(text);
    } catch (const Error& error) {
      refuse_url("timeout: " + error.message());
    }
  }();
  if (timeout < std::chrono::milliseconds(10)) refuse_url("timeout is too short; 5s is usual");
  if (timeout > std::chrono::hours(24)) refuse_url("timeout is too long; 5s is usual");
  return timeout;
}

std::vector<std::string_view> split_hosts(std::string_view text) {
  std::vector<std::string_view> hosts;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    hosts.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return hosts;
}

}  // namespace interlock::core
