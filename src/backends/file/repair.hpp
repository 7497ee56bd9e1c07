// Finds shards that can't be read, and sets them aside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace interlock::file {

/// Checks every shard under its lock. One that can't be read is renamed from 0a3.json to
/// 0a3.corrupt-1 (with `dry_run` it only says so), and the resources in it count as free from then
/// on. Fences still rise. Returns what it found, a line each, for people. Throws Error if the
/// directory is not fit.
std::vector<std::string> repair(const std::filesystem::path& directory, bool dry_run);

}  // namespace interlock::file
