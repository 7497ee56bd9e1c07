// Stores, opened in code instead of by URL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock {

/// In this process only; for tests, and for programs that run once. Several clients can share one:
///
///     MemoryStore store;
///     Client a(store.open()), b(store.open());
///
/// With a ManualClock, expiry follows it.
class MemoryStore {
 public:
  explicit MemoryStore(std::shared_ptr<Clock> clock = {});
  [[nodiscard]] std::unique_ptr<Backend> open() const;

  class Table;

 private:
  std::shared_ptr<Table> table_;
};

/// A MemoryStore for one client.
std::unique_ptr<Backend> memory_store(std::shared_ptr<Clock> clock = {});

struct FileOptions {
  /// Locks on NFS, SMB and the like are refused, since neither flock nor process ids mean the same
  /// thing to everybody there. True: do it all the same.
  bool allow_network_file_system = false;
};

/// Many processes of one host and one user. The directory is made if it is missing (0700), but not
/// those above it; it must be ours alone. Throws Error (refused) if it is not fit.
std::unique_ptr<Backend> file_store(const std::filesystem::path& directory,
                                    FileOptions options = {});

/// Checks every file of a file store, each under its lock, and sets those aside that can't be read
/// (with `dry_run` it only says so): what they recorded counts as free from then on, so make sure
/// that the holders have ended. Fences still rise. Returns a line for people about each of them,
/// and a summary. Throws Error (refused) if the directory is not fit.
std::vector<std::string> repair_file_store(const std::filesystem::path& directory, bool dry_run);

namespace detail {
/// For the URL of a file store without a directory: throws Error where opening would, and makes nothing.
void check_file_store_can_be_made(Url url);
}  // namespace detail

/// A store around a store in which things go wrong, from a seed, for our tests and yours.
struct ChaosOptions {
  std::uint64_t seed = 1;
  double fail = 0.0;        ///< the call never reaches the store: unreachable
  double drop_reply = 0.0;  ///< it is done, and the answer is lost: unreachable, in doubt
  double duplicate = 0.0;   ///< it reaches the store twice
  double drop_wake = 0.0;   ///< a wake-up is swallowed
  double delay = 0.0;       ///< the answer comes late, by up to …
  Duration max_delay = std::chrono::milliseconds(20);
};

class Chaos : public Backend {
 public:
  /// Changes what goes wrong from now on. Thread-safe.
  virtual void set(const ChaosOptions& options) = 0;
};

std::unique_ptr<Chaos> chaos(std::unique_ptr<Backend> inner, ChaosOptions options = {});

}  // namespace interlock
