// Finds shards that can't be read, and sets them aside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/file/directory.hpp"

namespace interlock::file {

/// Checks every shard under its lock. One that can't be read is renamed from 0a3.json to
/// 0a3.corrupt-1 (with `dry_run` it only says so), and the resources in it count as free from then
/// on. Fences still rise. Returns what it found, a line each, for people. Throws Error if the
/// directory is not fit.
std::vector<std::string> repair(const std::filesystem::path& directory, bool dry_run);

/// After a power failure, files may be cut or full of zeros, since nothing was ever flushed.
/// Whoever opens the store first in a new boot sets those aside: no record in them can count any
/// more.
void settle_after_boot(const Directory& directory, const std::string& boot);

}  // namespace interlock::file
