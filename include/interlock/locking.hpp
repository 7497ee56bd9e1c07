// Lists of resources, locked and released by name: no leases to keep.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "interlock/client.hpp"

namespace interlock {

/// How a Locking reads its names.
struct LockingOptions {
  /// Off: slashes mean nothing, so names that look like paths are independent. On: "table" excludes
  /// "table/row", as with Options::hierarchy of other locks. All who use the same names have to agree.
  bool hierarchy = false;
};

/// Where a Locking keeps its locks. What is left empty is taken from the settings (config.hpp):
/// LOCKING_BACKEND, REDIS_HOST and so on.
struct LockingStore {
  /// "memory", "file", "redis", or any URL. Empty: "redis" if one of its fields is given, "file" if one
  /// of its fields is given, else what the settings say.
  std::string backend{};

  // For "redis". Each goes before its variable: REDIS_HOST, REDIS_PORT, REDIS_DB, REDIS_PASSWORD.
  std::string host{};
  std::optional<int> port{};
  std::optional<int> db{};
  std::string password{};

  // For "file".
  /// The directory that has the store in it. Empty, without a lock_file_name: the user's own store.
  std::filesystem::path working_dir{};
  /// The store's name in working_dir: a directory, as Interlock has more than one file. Empty:
  /// ".interlock".
  std::string lock_file_name{};
};

/// Locks of one identity. It keeps the leases itself, renews them while they are held, and gives back
/// what is left when it is destroyed. Thread-safe.
///
///     Locking locking("worker-1");
///     if (locking.acquire({"file_A", "file_B"}, 10s, "ingest-job-42")) {
///       ingest();
///       locking.release({"file_A", "file_B"});
///     }
///
/// Re-entrant by identity: whoever has the same identity, in any thread, process or machine, is let in,
/// so threads that are to exclude each other need identities of their own. What was acquired n times
/// is free after n releases.
///
/// Prefer a Mutex or a MultiLock where you can: their leases tell when they are lost, and have fences.
class Locking {
 public:
  /// The longest that acquire() waits unless it is told otherwise.
  static constexpr Duration kMaxWait = std::chrono::seconds(30);

  /// On this client's store. Throws Error (invalid_owner) if the identity is empty.
  Locking(std::string identity, Client locks, LockingOptions options = {});
  /// On the store that this says. Throws Error (invalid) if its fields contradict each other, and as
  /// connect(const Config&) does.
  Locking(std::string identity, const LockingStore& store, LockingOptions options = {},
          ClientOptions client = {});
  /// The same for a backend alone: "memory", "file", "redis", or any URL. Empty: what the settings say,
  /// LOCKING_BACKEND among them; and if they say nothing, memory with a warning.
  explicit Locking(std::string identity, std::string_view backend = {}, ClientOptions client = {});

  Locking(const Locking&) = delete;
  Locking& operator=(const Locking&) = delete;
  ~Locking();

  /// Takes all of them or none, exclusively, in line with all others who wait; nobody ever sees them
  /// half-taken. Calls that ask for all they need at once can't block each other for good; who holds
  /// something and asks for more can, see MultiLock. A name given twice is one name; no name at all is
  /// always had. False: not within `limit`, and nothing is left behind. Throws Error if the store fails;
  /// and (deadlock) if waiting on would never end, as this thread holds what others wait for, see
  /// deadlock.hpp: release it, and try again.
  ///
  /// `duration` is how long others wait if this process disappears; while it lives, it renews.
  /// `who` is for people: who() shows it, also if it is empty. `limit`: 0s looks once and does not wait;
  /// less is an Error (invalid), and so is a name of nothing but spaces.
  [[nodiscard]] bool acquire(const std::vector<std::string>& resources,
                             Duration duration = std::chrono::seconds(30), std::string who = {},
                             Duration limit = kMaxWait);

  /// One lock as a handle: nothing, if it was not had within `timeout` or `cancel` was stopped. The lease
  /// knows its resource, when it was acquired and until when it is valid; it renews itself, and `expiry` is how
  /// long others wait if this process disappears. This object does not keep it: release(), holds() and the
  /// destructor leave it alone. Throws Error before any I/O: invalid for a blank key or a timeout of 0s or
  /// less, invalid_ttl for an expiry of 0s or less.
  [[nodiscard]] std::optional<Lease> try_acquire(const std::string& key, Duration timeout,
                                                 Duration expiry, std::stop_token cancel = {});

  /// Gives these back, each once, and keeps the rest. Names that this object does not hold are passed
  /// over, whoever holds them. True: all of them were ours until now. Throws Error (unreachable) if the
  /// store does not answer; it is then asked again in the background.
  bool release(const std::vector<std::string>& resources);

  /// Whether all of them are held by this object at this moment. Look before a step that must not
  /// overlap another's: a lease can be lost, if the store is out of reach for too long.
  [[nodiscard]] bool holds(const std::vector<std::string>& resources) const;

  /// The `who` of the holder of each resource that is held, by anybody: empty if it gave none. Free ones
  /// are left out, and so are those whose time is over. Throws Error if the store can't be read.
  [[nodiscard]] std::map<std::string, std::string> who(
      const std::vector<std::string>& resources) const;

  /// The bytes of a file, read under its lock, together with other readers: nobody who acquires it by
  /// the same path writes meanwhile. The path as it is written is the lock's name, so 512 bytes are the
  /// most. Nothing, if there is no such file or the lock could not be had within `limit`. Throws Error if the
  /// store fails or the lock was lost while reading, and std::system_error if the file is there and can't
  /// be read.
  [[nodiscard]] std::optional<std::string> read_with_lock(
      const std::filesystem::path& path, Duration duration = std::chrono::seconds(5),
      Duration limit = kMaxWait);

  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }
  [[nodiscard]] const Client& client() const noexcept { return locks_; }

 private:
  struct Held;

  [[nodiscard]] Options options(Duration duration, std::string who) const;

  const std::string identity_;
  const Client locks_;
  const LockingOptions options_;
  mutable std::mutex mutex_;  // guards the list; never held during a call to the store
  std::vector<std::shared_ptr<Held>> held_;  // oldest first
};

}  // namespace interlock
