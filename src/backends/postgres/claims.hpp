// Claims as parameters of the verbs, and the server's answers as ours.
#pragma once

#include <string>
#include <vector>

#include "backends/postgres/result.hpp"
#include "interlock/backend.hpp"

namespace interlock::postgres {

using Parameters = std::vector<std::string>;

/// "{1,2}": the ids of its parts.
std::string ids_of(const Claim& claim, const std::string& prefix);

/// One exclusive lock, and nothing special about it.
bool is_usual(const Claim& claim);

void add_acquire(Parameters& parameters, const Claim& claim, bool queue, const std::string& prefix);
void add_renew(Parameters& parameters, const Claim& claim, const std::string& prefix);
void add_release(Parameters& parameters, const Claim& claim, const std::string& prefix);
void add_inspect(Parameters& parameters, const Query& query, const std::string& prefix);

/// 32 digits, however they are grouped; empty if there are not.
Owner owner_of(std::string_view text);

/// The locks of a claim, for errors.
std::string names_of(const Claim& claim);

Answer to_answer(const Outcome& outcome, const Claim& claim, const std::string& node);
/// Of one that waited in its session: for how long, and what came of it, if anything.
struct Waited {
  Duration time{};
  Answer answer{};
};
Waited to_waited(const Outcome& outcome, const Claim& claim, const std::string& node);
Snapshot to_snapshot(const Outcome& outcome, const std::string& prefix, const std::string& node);

}  // namespace interlock::postgres
