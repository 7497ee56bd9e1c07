// Holders and waiters, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "interlock/client.hpp"

namespace cli {

inline constexpr int kAnyWidth = 1 << 20;

/// "host:123 (label)".
std::string describe(const interlock::Who& who);
/// "label"; without a label, "host:123".
std::string label_or_process(const interlock::Who& who);

/// Whole seconds from a second on: nobody needs "2m10.483s".
std::string for_people(interlock::Duration duration);
/// "12s left".
std::string time_left(const interlock::Entry& entry);

/// A table with a line for each holder and waiter. Without `all`, those are left out that are only
/// there because something below is locked. Empty if there is none. `columns`: how wide it may be; long
/// host names are shortened for that, and nothing else.
std::vector<std::string> table(const interlock::Snapshot& snapshot, bool all,
                               int columns = kAnyWidth);

/// Rows of cells as lines with columns.
std::vector<std::string> align(const std::vector<std::vector<std::string>>& rows);

/// The documented form: see interlock(1).
nlohmann::ordered_json to_json(const interlock::Snapshot& snapshot, const std::string& store);
/// One line of it on stdout, or several with an indent. What isn't UTF-8 is replaced; what a terminal would act on, or not
/// show, is escaped.
void print_json(const nlohmann::ordered_json& json, int indent = -1);

/// "held by host:123 (label) for 2m10s, 2 ahead of you"; empty if nobody is. `us` is our place in
/// the queue. `columns`: as for `table`.
std::string in_the_way(const interlock::Client& client, const std::vector<interlock::Part>& parts,
                       const std::optional<interlock::Owner>& us, int columns = kAnyWidth);

}  // namespace cli
