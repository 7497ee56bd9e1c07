#include "backends/redis/redlock.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/redlock_store.hpp"
#include "core/option_file.hpp"

namespace interlock::redis {

namespace {

constexpr std::size_t kMostNodes = 31;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid, "the store's URL: redlock: " + why);
}

RedlockGroup::Member member_of(std::string_view text, std::vector<std::string>& warnings) {
  auto url = Url::parse(text);
  if (url.scheme != "redis" && url.scheme != "rediss" && url.scheme != "redis+unix")
    refuse("each of its nodes is a redis:, rediss: or redis+unix: URL");
  if (url.query.contains("prefix")) refuse("all nodes have one prefix: &prefix= after the nodes");
  auto settings = Settings::take_from(url);
  core::add_warnings(warnings, settings.warnings);
  url.expect_all_taken(Settings::options());
  if (settings.endpoints.size() != 1) refuse("each of its nodes is one server");
  const auto& endpoint = settings.endpoints.front();
  if (url.path.size() > 1 && endpoint.socket.empty())
    settings.access.database = database_of(url.path);
  return {.name = endpoint.to_string(), .endpoint = endpoint, .access = settings.access};
}

}  // namespace

std::unique_ptr<Backend> open_redlock(Url url) {
  std::vector<RedlockGroup::Member> members;
  std::vector<std::string> warnings;
  const auto list = url.take("nodes");
  for (std::string_view rest = list; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    members.push_back(member_of(rest.substr(0, comma), warnings));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!members.empty()) {
    if (!url.authority.empty()) refuse("its nodes are named twice: before the ? and after it");
    url.authority = "unused";
  }
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options({"nodes"}));
  if (members.empty()) {
    if (url.path.size() > 1) settings.access.database = database_of(url.path);
    for (const auto& endpoint : settings.endpoints) {
      members.push_back(
          {.name = endpoint.to_string(), .endpoint = endpoint, .access = settings.access});
    }
  }
  if (members.size() < 2 || members.size() > kMostNodes)
    refuse(
        settings.access.password.find('@') == std::string::npos
            ? "it needs several servers, three or five as a rule; one alone is redis:"
            : "it needs several servers; a user and password are given once, before the first, and "
              "an @ in them is %40");
  Traits traits;
  traits.name = "redlock";
  traits.where = "redlock://";
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (members[i].endpoint == members[j].endpoint)
        refuse("it names " + members[i].name + " twice: a majority has to be of different servers");
    }
    traits.where += (i == 0 ? "" : ",") + members[i].name;
  }
  for (const auto& member : members) {
    auto warning = readable_password({member.endpoint}, member.access, "redlock:?nodes=rediss");
    if (!warning) continue;
    traits.warnings.push_back(std::move(*warning));
    break;
  }
  traits.slots = false;
  traits.why_no_slots = kNoSlots;
  traits.call_timeout = settings.access.call_timeout;
  traits.drift_rate = 0.01;
  core::add_warnings(traits.warnings, warnings);
  core::add_warnings(traits.warnings, settings.warnings);
  if (members.size() % 2 == 0) {
    traits.warnings.push_back(std::to_string(members.size()) +
                              " nodes survive the loss of no more of them than " +
                              std::to_string(members.size() - 1) +
                              " would, and each makes one more that can fail: "
                              "take an odd number");
  }
  return std::make_unique<Redlock>(settings.prefix, members, std::move(traits));
}

}  // namespace interlock::redis
