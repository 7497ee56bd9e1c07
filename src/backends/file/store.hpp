// What a file store does, one critical section at a time, on whichever thread it is called.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/file/directory.hpp"
#include "backends/file/doorbell.hpp"
#include "backends/file/shard.hpp"
#include "backends/file/shard_file.hpp"
#include "backends/file/waiters.hpp"
#include "interlock/backend.hpp"

namespace interlock::file {

/// One call of Backend, and what came of it.
struct Operation {
  enum class Kind : std::uint8_t { acquire, renew, release };

  Kind kind = Kind::acquire;
  bool queue = false;
  Claim claim;
  std::vector<ShardId> shards;  ///< where its resources are, see shards_of
  Answer answer{};
};

/// A look at some or all resources, a few shards at a time.
struct Inspection {
  Query query;
  bool begun = false;
  bool read_some = false;
  std::vector<ShardId> shards{};  ///< those still to be read, last one first
  ReadLimit limit{};
  Snapshot snapshot{};
};

/// Thread-safe. Nothing here waits for long: what is locked by somebody else is reported, and the
/// caller tries again in its own way.
class Store {
 public:
  Store(const std::filesystem::path& directory, bool allow_network_file_system);

  /// All of these, which have the same shards, in one critical section: read, decide, write, wake.
  /// False: `blocker` is locked by somebody else, and nothing was done.
  bool attempt(std::span<Operation* const> operations, ShardId& blocker);
  /// False: as above; call it again to go on.
  bool attempt(Inspection& inspection, ShardId& blocker);

  /// Nobody gave the lock of this shard back for so long.
  [[nodiscard]] Error locked_out(ShardId blocker, Duration waited) const;

  [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
  [[nodiscard]] Doorbell& doorbell() noexcept { return doorbell_; }
  [[nodiscard]] Waiters& waiters() noexcept { return waiters_; }
  /// There is a doorbell or a process that is not listened to yet. Asking clears it.
  bool has_news() noexcept { return news_.exchange(false); }

  /// Set once, before anything else.
  void set_sink(WakeSink sink) { sink_ = std::move(sink); }
  void ring(std::span<const Owner> owners) const;
  /// Calls the sink no more.
  void silence() noexcept { silent_ = true; }

  static constexpr Duration kTicketTtl = std::chrono::seconds(5);

 private:
  bool transact(std::span<Operation* const> operations, std::vector<Wake>& wakes, ShardId& blocker);
  void commit(std::span<Operation* const> operations, std::vector<Wake>& wakes);
  void attend(Operation& op, const LockTable& table, TimePoint now);
  [[nodiscard]] LockTable::Rules rules(std::vector<ShardState>& states,
                                       std::span<const ShardId> shards) const;
  [[nodiscard]] Origin origin_of(const Claim& claim) const;
  [[nodiscard]] std::vector<Process> in_the_way(const LockTable& table, const Claim& claim) const;
  void wake(std::span<Operation* const> operations, std::vector<Wake>& wakes) const;

  Directory directory_;
  std::string boot_;
  std::uint64_t realm_;
  Process self_;
  Doorbell doorbell_;
  Waiters waiters_;
  WakeSink sink_;
  std::atomic<bool> silent_{false};
  std::atomic<bool> news_{false};
};

}  // namespace interlock::file
