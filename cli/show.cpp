#include "show.hpp"

#include <algorithm>
#include <iostream>

#include "interlock/duration.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Duration;
using interlock::Entry;
using interlock::Mode;
using interlock::ResourceState;

using Row = std::vector<std::string>;

std::string mode_of(const Entry& entry, std::uint32_t capacity) {
  if (entry.ancestor) return "below";
  if (entry.mode != Mode::slots) return std::string(interlock::to_string(entry.mode));
  return std::to_string(entry.slots) + " of " + std::to_string(capacity);
}

constexpr int kShortestHost = 8;

// A host's name may be long, and says the least. So it is what makes room, by this many columns.
std::string host_and_pid(const interlock::Who& who, int less = 0) {
  const auto wide = std::max(kShortestHost, width(who.host) - less);
  std::string text = width(who.host) <= wide ? who.host : printable(who.host, wide - 2) + "..";
  if (who.pid != 0) text.append(":").append(std::to_string(who.pid));
  return text;
}

std::string describe_within(const interlock::Who& who, int less) {
  const auto owner = who.owner_id.empty() ? "" : who.owner_id + " on ";
  if (who.host.empty()) return owner + (who.label.empty() ? "an unknown host" : who.label);
  std::string text = owner + host_and_pid(who, less);
  if (!who.label.empty()) text += " (" + who.label + ")";
  return text;
}

// How long is left says something of holders only: those who wait, wait on.
Row row(const ResourceState& state, const Entry& entry, const std::string& what, bool holds,
        int less) {
  return {printable(state.resource),      what,
          mode_of(entry, state.capacity), printable(host_and_pid(entry.who, less)),
          for_people(entry.age),          holds ? for_people(entry.remaining) : "-",
          printable(entry.who.label)};
}

// With host names that are this much shorter.
std::vector<std::string> table_with(const interlock::Snapshot& snapshot, bool all, int less) {
  std::vector<Row> rows{{"NAME", "STATE", "MODE", "HOST:PID", "AGE", "LEFT", "LABEL"}};
  for (const auto& state : snapshot.resources) {
    for (const auto& entry : state.holders) {
      if (all || !entry.ancestor) rows.push_back(row(state, entry, "held", true, less));
    }
    int place = 0;
    for (const auto& entry : state.waiters) {
      ++place;
      if (all || !entry.ancestor) {
        rows.push_back(row(state, entry, "waiting " + std::to_string(place), false, less));
      }
    }
  }
  if (rows.size() == 1) return {};
  return align(rows);
}

// When a record ends by this machine's wall clock, in unix seconds. Rounded up, so that no live record looks expired.
std::int64_t unix_end(Duration remaining) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(now);
  // Whole seconds apart from the rest: a remaining time of centuries does not fit beside the present one in nanoseconds.
  const auto left = std::chrono::floor<std::chrono::seconds>(remaining);
  const auto rest = std::chrono::ceil<std::chrono::seconds>((now - whole) + (remaining - left));
  return (whole + left + rest).count();
}

nlohmann::ordered_json to_json(const std::string& resource, const Entry& entry) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  nlohmann::ordered_json json{{"res", resource},
                              {"exp", nullptr},
                              {"pid", entry.who.pid},
                              {"who", label_or_process(entry.who)},
                              {"owner_id", entry.who.owner_id},
                              {"identity", entry.who.identity},
                              {"actor", entry.who.actor},
                              {"host", entry.who.host},
                              {"owner", entry.owner.brief()},
                              {"mode", interlock::to_string(entry.mode)},
                              {"slots", entry.slots},
                              {"ancestor", entry.ancestor},
                              {"priority", entry.priority},
                              {"age_ms", duration_cast<milliseconds>(entry.age).count()},
                              {"remaining_ms", nullptr}};
  if (entry.remaining != Duration::max()) {
    json["exp"] = unix_end(entry.remaining);
    json["remaining_ms"] = duration_cast<milliseconds>(entry.remaining).count();
  }
  return json;
}

}  // namespace

std::string describe(const interlock::Who& who) { return describe_within(who, 0); }

std::string label_or_process(const interlock::Who& who) {
  return who.label.empty() ? describe(who) : who.label;
}

std::string for_people(Duration duration) {
  using std::chrono::seconds;
  if (duration == Duration::max()) return "no end";
  if (duration >= seconds(1)) duration = std::chrono::floor<seconds>(duration);
  return interlock::format_duration(std::chrono::floor<std::chrono::milliseconds>(duration));
}

std::string time_left(const Entry& entry) {
  return entry.remaining == Duration::max() ? "without an end"
                                            : for_people(entry.remaining) + " left";
}

std::vector<std::string> table(const interlock::Snapshot& snapshot, bool all, int columns) {
  auto lines = table_with(snapshot, all, 0);
  int widest = 0;
  for (const auto& line : lines) widest = std::max(widest, width(line));
  return widest <= columns ? lines : table_with(snapshot, all, widest - columns);
}

std::vector<std::string> align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (const auto& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width(cells[i]));
  }
  std::vector<std::string> lines;
  for (const auto& cells : rows) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += cells[i];
      for (int gap = width(cells[i]); gap < widths[i] + 2; ++gap) line += ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

nlohmann::ordered_json to_json(const interlock::Snapshot& snapshot, const std::string& store) {
  auto resources = nlohmann::ordered_json::array();
  for (const auto& state : snapshot.resources) {
    auto holders = nlohmann::ordered_json::array();
    for (const auto& entry : state.holders) {
      auto holder = to_json(state.resource, entry);
      holder["fence"] = entry.fence.value;
      holders.push_back(std::move(holder));
    }
    auto waiters = nlohmann::ordered_json::array();
    for (const auto& entry : state.waiters) {
      auto waiter = to_json(state.resource, entry);
      waiter["place"] = waiters.size() + 1;
      waiters.push_back(std::move(waiter));
    }
    resources.push_back({{"res", state.resource},
                         {"capacity", state.capacity},
                         {"holders", std::move(holders)},
                         {"waiters", std::move(waiters)}});
  }
  return {{"store", store}, {"resources", std::move(resources)}};
}

void print_json(const nlohmann::ordered_json& json, int indent) {
  std::cout << printable_json(
                   json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace))
            << std::endl;
}

std::string in_the_way(const interlock::Client& client, const std::vector<interlock::Part>& parts,
                       const std::optional<interlock::Owner>& us, int columns) {
  interlock::Query query;
  for (const auto& part : parts) {
    query.resources.push_back(part.resource);
    for (auto& above : interlock::ancestors(part.resource)) {
      query.resources.push_back(std::move(above));
    }
  }
  const auto snapshot = client.inspect(query);
  const auto asked_for = [&](const std::string& name) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const auto& part) { return part.resource == name; });
  };
  for (const auto& state : snapshot.resources) {
    // Above what we ask for, only those are in the way that hold all of it.
    const auto holder =
        std::find_if(state.holders.begin(), state.holders.end(), [&](const Entry& entry) {
          return asked_for(state.resource) || entry.mode == Mode::exclusive;
        });
    if (holder == state.holders.end()) continue;
    const auto begin =
        (parts.size() > 1 || !asked_for(state.resource) ? state.resource + " is " : "") +
        "held by ";
    std::string end = " for " + for_people(holder->age);
    if (state.holders.size() > 1)
      end += " and " + std::to_string(state.holders.size() - 1) + " more";
    const auto place = std::find_if(state.waiters.begin(), state.waiters.end(),
                                    [&](const Entry& entry) { return us && entry.owner == *us; });
    const auto ahead = place == state.waiters.end() ? 0 : place - state.waiters.begin();
    if (ahead > 0) end += ", " + std::to_string(ahead) + " ahead of you";
    const auto line = [&](const std::string& who) {
      std::string all = begin;
      all += who;
      return all += end;
    };
    auto text = line(describe(holder->who));
    const int too_wide = std::max(0, width(text) - columns);
    return too_wide == 0 ? text : line(describe_within(holder->who, too_wide));
  }
  return {};
}

}  // namespace cli
