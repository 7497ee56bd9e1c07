// A shard as JSON: written by hand, since that is several times as fast and the text is simple.
#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/file/shard.hpp"

namespace interlock::file {

namespace {

static_assert(kFormat == INTERLOCK_FORMAT, "CMakeLists.txt names another format");

using Json = nlohmann::json;

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
  if (!r.who->actor.empty()) json.text("actor", r.who->actor);
  if (!r.who->owner_id.empty()) json.text("owner_id", r.who->owner_id);
  if (!r.who->host.empty()) json.text("host", r.who->host);
  out += '}';
}

}  // namespace

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
  if (count > kMostRecords) {
    throw Error(Errc::refused, "more than " + std::to_string(kMostRecords) +
                                   " hold or wait for locks of one file; ask again later");
  }
  std::sort(rows.begin(), rows.end());

  std::string out;
  out.reserve(160 + count * 400);
  out += '{';
  Writer json(out);
  json.number("interlock", kFormat);
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
