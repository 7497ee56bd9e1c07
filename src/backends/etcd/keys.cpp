#include "backends/etcd/keys.hpp"

namespace interlock::etcd {

namespace {

constexpr char kTab = '\t';

std::string join(std::string_view prefix, std::string_view resource, std::string_view rest) {
  std::string key;
  key.reserve(prefix.size() + resource.size() + rest.size());
  return key.append(prefix).append(resource).append(rest);
}

}  // namespace

std::string Keys::key(std::string_view resource, Letter letter, std::string_view chair) const {
  return join(prefix_, resource, std::string{kTab, static_cast<char>(letter)}).append(chair);
}

std::string Keys::recall(std::string_view client) const { return join(prefix_, "\tr", client); }

Range Keys::row(std::string_view resource) const {
  return {join(prefix_, resource, "\t"), join(prefix_, resource, "\n")};
}

Range Keys::range(std::string_view resource, Letter first, Letter last) const {
  return {
      join(prefix_, resource, std::string{kTab, static_cast<char>(first)}),
      join(prefix_, resource, std::string{kTab, static_cast<char>(static_cast<char>(last) + 1)})};
}

Range Keys::all(std::string_view name_prefix) const {
  const auto begin = join(prefix_, name_prefix, "");
  // To etcd, a single NUL is the beginning and the end of everything.
  if (begin.empty()) return {std::string(1, '\0'), std::string(1, '\0')};
  auto end = begin;
  ++end.back();  // UTF-8 has no byte 0xff
  return {begin, end};
}

std::optional<Place> Keys::parse(std::string_view key) const {
  if (!key.starts_with(prefix_)) return std::nullopt;
  key.remove_prefix(prefix_.size());
  const auto tab = key.find(kTab);
  if (tab == std::string_view::npos || tab == 0 || tab + 2 >= key.size()) return std::nullopt;
  constexpr std::string_view kLetters = "hsvwx";
  if (kLetters.find(key[tab + 1]) == std::string_view::npos) return std::nullopt;
  return Place{.resource = key.substr(0, tab),
               .letter = static_cast<Letter>(key[tab + 1]),
               .chair = key.substr(tab + 2)};
}

}  // namespace interlock::etcd
