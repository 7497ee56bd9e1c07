// Which records belong to processes that have ended.
#pragma once

#include <map>

#include "backends/file/process.hpp"
#include "core/lock_table.hpp"

namespace interlock::file {

/// Asks about each process once, so make a new one for every critical section.
class Obituaries {
 public:
  Obituaries(Process self, std::uint64_t realm) : self_(self), realm_(realm) {}

  /// The record's process is known to have ended. Numbers of another pid namespace say nothing.
  bool operator()(const Record& record) {
    const Process process{record.who->pid, record.origin.born};
    if (process.pid <= 0 || process == self_) return false;
    if (realm_ == 0 || record.origin.realm != realm_) return false;
    const auto [it, fresh] = known_.try_emplace(process, false);
    if (fresh) it->second = has_ended(process);
    return it->second;
  }

 private:
  Process self_;
  std::uint64_t realm_;
  std::map<Process, bool> known_;
};

}  // namespace interlock::file
