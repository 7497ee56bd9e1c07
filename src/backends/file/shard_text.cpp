// Shards as JSON. Read by a library, strictly; written by hand, since that is four times as fast
// and the text is simple.
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "backends/file/shard.hpp"
#include "core/text.hpp"

namespace interlock::file {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestFence = std::uint64_t{1} << 53U;
constexpr Duration kLongestTtl = std::chrono::hours(24 * 367);

// ---- reading ----------------------------------------------------------------------------------

[[noreturn]] void corrupt(const std::string& why) { throw Error(Errc::corrupt, why); }

const Json* find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

template <class Integer>
Integer number(const Json& object, const char* key, Integer least, Integer most) {
  const Json* value = find(object, key);
  if (value == nullptr) corrupt(std::string("'") + key + "' is missing");
  const auto bad = [&] { corrupt(std::string("'") + key + "' is not a sensible number"); };
  if (value->is_number_unsigned()) {
    const auto n = value->get<std::uint64_t>();
    if (std::cmp_less(n, least) || std::cmp_greater(n, most)) bad();
    return static_cast<Integer>(n);
  }
  if (!value->is_number_integer()) bad();
  const auto n = value->get<std::int64_t>();
  if (std::cmp_less(n, least) || std::cmp_greater(n, most)) bad();
  return static_cast<Integer>(n);
}

template <class Integer>
Integer number_or(const Json& object, const char* key, Integer fallback, Integer least,
                  Integer most) {
  return find(object, key) == nullptr ? fallback : number<Integer>(object, key, least, most);
}

std::string text(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_string()) {
    corrupt(std::string("'") + key + "' is missing or not a text");
  }
  return value->get<std::string>();
}

std::string text_or_empty(const Json& object, const char* key) {
  return find(object, key) == nullptr ? std::string() : text(object, key);
}

bool flag(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value != nullptr && !value->is_boolean()) {
    corrupt(std::string("'") + key + "' is not true or false");
  }
  return value != nullptr && value->get<bool>();
}

Mode mode_of(const std::string& name) {
  for (const auto mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    if (name == to_string(mode)) return mode;
  }
  corrupt("there is no mode '" + printable(name, 32) + "'");
}

std::uint64_t hexadecimal(const std::string& digits) {
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    corrupt("'home' is not a hexadecimal number");
  }
  return value;
}

Record record_of(const Json& object, TimePoint now) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  using Priority = std::numeric_limits<std::int32_t>;
  Record record;
  const auto owner = Owner::parse(text(object, "owner"));
  if (!owner || owner->empty()) corrupt("'owner' is not 32 hexadecimal digits");
  record.owner = *owner;
  record.mode = mode_of(text(object, "mode"));
  if (record.mode == Mode::slots) {
    record.capacity = number<std::uint32_t>(object, "cap", 1, most);
    record.slots = number<std::uint32_t>(object, "slots", 1, record.capacity);
  }
  record.ancestor = flag(object, "anc");
  record.priority = number_or<std::int32_t>(object, "prio", 0, Priority::min(), Priority::max());
  const auto latest = (now + kLongestTtl).time_since_epoch().count();
  record.since = TimePoint(Duration(number<std::int64_t>(object, "since", 0, latest)));
  record.expires = TimePoint(Duration(number<std::int64_t>(object, "exp", 0, latest)));
  record.origin.born = number_or<std::uint64_t>(object, "born", 0, 0, any);
  record.origin.realm = number_or<std::uint64_t>(object, "realm", 0, 0, any);
  record.origin.home = hexadecimal(text(object, "home"));
  record.who = std::make_shared<const Who>(
      Who{.label = text(object, "who"),
          .identity = text_or_empty(object, "identity"),
          .host = text_or_empty(object, "host"),
          .pid = number<std::int64_t>(object, "pid", 0, std::numeric_limits<std::int32_t>::max())});
  return record;
}

const Json& array(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_array()) {
    corrupt(std::string("'") + key + "' is missing or not a list");
  }
  return *value;
}

// Reads one list and hands over each record with its resource, refusing one that comes twice.
template <class Take>
void read_list(const Json& list, ShardId id, const ReadContext& context, Take take) {
  std::set<std::pair<std::string, Owner>> seen;
  for (const auto& object : list) {
    if (!object.is_object()) corrupt("a record is not an object");
    auto resource = text(object, "res");
    if (resource.empty() || shard_of(resource) != id) {
      corrupt("the resource '" + printable(resource, 64) + "' does not belong here");
    }
    auto record = record_of(object, context.now);
    if (!seen.emplace(resource, record.owner).second) {
      corrupt("one owner is recorded twice for '" + printable(resource, 64) + "'");
    }
    take(resource, object, std::move(record));
  }
}

// ---- writing ----------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class Integer>
  void number(const char* key, Integer value) {
    begin(key);
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }
  void text(const char* key, std::string_view value) {
    begin(key);
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    if (plain) {
      out_ += '"';
      out_ += value;
      out_ += '"';
    } else {
      out_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
  void yes(const char* key) {
    begin(key);
    out_ += "true";
  }

 private:
  void begin(const char* key) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }

  std::string& out_;
};

void write_record(std::string& out, std::string_view resource, const Record& r,
                  const Ticket* ticket) {
  out += out.back() == '[' ? "\n{" : ",\n{";
  Writer json(out);
  json.text("res", resource);
  json.text("owner", r.owner.to_string());
  json.text("mode", to_string(r.mode));
  if (r.mode == Mode::slots) {
    json.number("slots", r.slots);
    json.number("cap", r.capacity);
  }
  if (r.ancestor) json.yes("anc");
  if (r.priority != 0) json.number("prio", r.priority);
  json.number("since", r.since.time_since_epoch().count());
  json.number("exp", r.expires.time_since_epoch().count());
  if (ticket == nullptr) {
    json.number("fence", r.fence);
  } else {
    json.number("ticket", ticket->number);
    if (ticket->stronger) json.yes("first");
  }
  json.number("pid", r.who->pid);
  if (r.origin.born != 0) json.number("born", r.origin.born);
  if (r.origin.realm != 0) json.number("realm", r.origin.realm);
  std::array<char, 16> home{};
  const auto end = std::to_chars(home.data(), home.data() + home.size(), r.origin.home, 16).ptr;
  json.text("home", std::string_view(home.data(), static_cast<std::size_t>(end - home.data())));
  json.text("who", r.who->label);
  if (!r.who->identity.empty()) json.text("identity", r.who->identity);
  if (!r.who->host.empty()) json.text("host", r.who->host);
  out += '}';
}

}  // namespace

ShardState read_shard(std::string_view content, ShardId id, const ReadContext& context,
                      LockTable& table) {
  if (content.empty()) return {};
  const auto json = Json::parse(content, nullptr, false);
  if (json.is_discarded()) corrupt("it is not JSON");
  if (!json.is_object()) corrupt("it is not a JSON object");
  if (number<std::uint64_t>(json, "interlock", 0, ~std::uint64_t{0}) != 1) {
    corrupt("it was written by another version of this library");
  }
  ShardState state;
  state.fence = number<std::uint64_t>(json, "fence", 0, kLargestFence);
  state.ticket = number<std::uint64_t>(json, "ticket", 0, kLargestFence);
  const auto boot = text(json, "boot");
  const Json& records = array(json, "records");
  const Json& queue = array(json, "queue");
  if (boot != context.boot) return state;

  read_list(records, id, context,
            [&](const std::string& resource, const Json& object, Record record) {
              record.fence = number<std::uint64_t>(object, "fence", 0, state.fence);
              if (context.skip && context.skip(record)) return;
              table.restore_holder(resource, std::move(record));
            });
  std::set<std::pair<std::string, Ticket>> places;
  read_list(
      queue, id, context, [&](const std::string& resource, const Json& object, Record record) {
        const Ticket ticket{.stronger = flag(object, "first"),
                            .priority = record.priority,
                            .number = number<std::uint64_t>(object, "ticket", 1, state.ticket)};
        if (!places.emplace(resource, ticket).second) corrupt("two have the same ticket");
        if (context.skip && context.skip(record)) return;
        table.restore_waiter(resource, ticket, std::move(record));
      });
  return state;
}

std::string write_shard(const LockTable& table, ShardId id, ShardState state,
                        const std::string& boot) {
  std::vector<std::pair<std::string_view, const Row*>> rows;
  std::size_t count = 0;
  for (const auto& [resource, row] : table.rows()) {
    if (shard_of(resource) != id) continue;
    rows.emplace_back(resource, &row);
    count += row.holders.size() + row.queue.size();
    for (const auto& [ticket, waiter] : row.queue)
      state.ticket = std::max(state.ticket, ticket.number);
  }
  std::sort(rows.begin(), rows.end());

  std::string out;
  out.reserve(160 + count * 400);
  out += '{';
  Writer json(out);
  json.number("interlock", 1);
  json.text("boot", boot);
  json.number("fence", state.fence);
  json.number("ticket", state.ticket);
  out += ",\n\"records\":[";
  for (const auto& [resource, row] : rows) {
    for (const auto& holder : row->holders) write_record(out, resource, holder, nullptr);
  }
  out += "],\n\"queue\":[";
  for (const auto& [resource, row] : rows) {
    for (const auto& [ticket, waiter] : row->queue) {
      write_record(out, resource, waiter, &ticket);
    }
  }
  out += "]}\n";
  return out;
}

}  // namespace interlock::file
