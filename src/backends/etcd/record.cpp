#include "backends/etcd/record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/format.hpp"
#include "core/text.hpp"

namespace interlock::etcd {

namespace {

static_assert(kFormat == INTERLOCK_FORMAT, "CMakeLists.txt names another format");

using Json = nlohmann::json;
using std::chrono::milliseconds;

// A year, and what a renewal may add.
constexpr milliseconds kLongestTtl = std::chrono::hours(24 * 367);

milliseconds wall_clock() {
  return std::chrono::duration_cast<milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

// Anybody can write anything there.
milliseconds whole(double number, milliseconds most) {
  return milliseconds(
      static_cast<std::int64_t>(std::clamp(number, 0.0, static_cast<double>(most.count()))));
}

// The library would take what does not fit for another number.
template <class Number>
Number number(const Json& json, const char* key, Number otherwise) {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  const auto read = [](auto whole) {
    if (!std::in_range<Number>(whole)) throw Json::other_error::create(501, "too large", nullptr);
    return static_cast<Number>(whole);
  };
  if (found->is_number_unsigned()) return read(found->template get<std::uint64_t>());
  if (found->is_number_integer()) return read(found->template get<std::int64_t>());
  throw Json::other_error::create(501, "no whole number", nullptr);
}

Owner owner_of(const std::string& text) {
  const auto owner = Owner::parse(text);
  if (!owner) throw Json::other_error::create(501, "no owner", nullptr);
  return *owner;
}

Mode mode_of(const std::string& text) {
  for (const auto mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    if (text == to_string(mode)) return mode;
  }
  throw Json::other_error::create(501, "no mode is called " + text, nullptr);
}

Error of_other_format(std::uint64_t found, std::string_view key) {
  return {Errc::refused,
          "the key " + printable(key, 600) + ": " + core::other_format(found, kFormat)};
}

}  // namespace

std::string encode(const Value& value, TimePoint now) {
  const auto& record = value.record;
  const auto& who = *record.who;
  Json json{
      {"interlock", kFormat},
      {"owner", record.owner.to_string()},
      {"mode", to_string(record.mode)},
      {"ttl", std::chrono::ceil<milliseconds>(value.ttl).count()},
      {"since", (wall_clock() - std::chrono::floor<milliseconds>(now - record.since)).count()}};
  if (record.mode == Mode::slots) {
    json["slots"] = record.slots;
    json["capacity"] = record.capacity;
  }
  if (record.ancestor) json["ancestor"] = true;
  if (record.priority != 0) json["priority"] = record.priority;
  if (record.fence != 0) json["fence"] = record.fence;
  if (value.stronger) json["stronger"] = true;
  if (!who.label.empty()) json["label"] = who.label;
  if (!who.identity.empty()) json["identity"] = who.identity;
  if (!who.actor.empty()) json["actor"] = who.actor;
  if (!who.owner_id.empty()) json["owner_id"] = who.owner_id;
  if (!who.host.empty()) json["host"] = who.host;
  if (who.pid != 0) json["pid"] = who.pid;
  if (!who.tied) json["tied"] = false;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Value decode(std::string_view text, TimePoint now, std::string_view key) {
  try {
    const auto json = Json::parse(text);
    const auto format = number(json, "interlock", std::uint64_t{0});
    if (format != 0 && format != kFormat) throw of_other_format(format, key);
    Value value;
    auto& record = value.record;
    record.owner = owner_of(json.at("owner").get<std::string>());
    record.mode = mode_of(json.at("mode").get<std::string>());
    record.slots = number(json, "slots", std::uint32_t{1});
    record.capacity = number(json, "capacity", std::uint32_t{0});
    record.ancestor = json.value("ancestor", false);
    record.priority = number(json, "priority", std::int32_t{0});
    record.fence = number(json, "fence", std::uint64_t{0});
    value.ttl = whole(json.at("ttl").get<double>(), kLongestTtl);
    value.stronger = json.value("stronger", false);
    const auto today = wall_clock();
    record.since = now - (today - whole(json.value("since", 0.0), today));
    record.who = std::make_shared<const Who>(Who{.label = json.value("label", ""),
                                                 .identity = json.value("identity", ""),
                                                 .host = json.value("host", ""),
                                                 .pid = number(json, "pid", std::int64_t{0}),
                                                 .tied = json.value("tied", true),
                                                 .actor = json.value("actor", ""),
                                                 .owner_id = json.value("owner_id", "")});
    if (format != kFormat) throw of_other_format(format, key);
    return value;
  } catch (const Json::exception&) {
    throw Error(Errc::corrupt,
                "the key " + printable(key, 600) +
                    " holds something that is no lock; delete it, or use another prefix");
  }
}

}  // namespace interlock::etcd
