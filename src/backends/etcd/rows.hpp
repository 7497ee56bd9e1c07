// The rows of a claim as they were read, and what the lock table makes of them.
#pragma once

#include <etcd.pb.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/etcd/book.hpp"
#include "backends/etcd/keys.hpp"
#include "backends/etcd/sightings.hpp"
#include "backends/etcd/txn.hpp"
#include "backends/etcd/watcher.hpp"
#include "core/lock_table.hpp"

namespace interlock::etcd {

/// One key.
struct Entry {
  std::string key{};
  Record record{};
  Letter letter = Letter::holds;
  bool stronger = false;
  std::int64_t created = 0;
  std::int64_t written = 0;

  [[nodiscard]] Seat seat() const { return seat_of(letter); }
};

class Rows {
 public:
  Rows(const Keys& keys, Sightings& sightings, TimePoint now)
      : keys_(keys), sightings_(sightings), now_(now) {}

  /// Only these resources count; without, all do.
  void only(const Claim& claim);
  /// What can't be read is not there. (In a list of all, what is of another format is still an error.)
  void pass_over_broken() { pass_over_ = true; }
  /// What was read. Throws Error (corrupt).
  void add(const wire::TxnResponse& response);

  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  /// The state is that of this revision.
  [[nodiscard]] std::int64_t revision() const noexcept { return revision_; }
  [[nodiscard]] const Entry* find(std::string_view resource, Seat seat, const Owner& owner) const;
  /// A holder that has it.
  [[nodiscard]] const Entry* with_fence(std::string_view resource, std::uint64_t fence) const;
  /// When a holder with one of these letters was last written; 0: there is none.
  [[nodiscard]] std::int64_t last_written(std::string_view resource, Letter last_letter) const;
  /// The same for all keys that were read.
  [[nodiscard]] std::int64_t last_written() const noexcept { return last_written_; }

  /// So many waiters were counted, but not read.
  [[nodiscard]] std::uint32_t unread() const noexcept { return unread_; }

  /// A table with these rows. It gives fence 0 to what gets the revision of its transaction.
  [[nodiscard]] LockTable table() const;

  /// Holders whose time is over, as operations: gone, unless they were written since.
  [[nodiscard]] Ops clear_expired() const;
  /// Somebody else has a key of this chair.
  [[nodiscard]] bool occupied(const std::string& chair, const Owner& owner) const;

  /// What the table granted, as operations; where the parts are then, and since when (0: from now
  /// on).
  struct Change {
    Ops ops{};
    std::vector<std::string> keys{};
    std::vector<std::int64_t> created{};
  };
  [[nodiscard]] Change change(const LockTable& table, const Claim& claim, const std::string& chair,
                              std::int64_t lease) const;

  /// For one that was told to queue: what it waits for.
  struct Ahead {
    Target target{};
    std::optional<Wait::Ahead> key{};
    TimePoint expires = TimePoint::max();
  };
  [[nodiscard]] std::optional<Ahead> ahead(const LockTable& table, const Claim& claim) const;

 private:
  using Row = std::vector<Entry>;

  [[nodiscard]] const Row& row(std::string_view resource) const;
  [[nodiscard]] static bool one_kind(const Entry& first, const Entry& other);

  const Keys& keys_;
  Sightings& sightings_;
  const TimePoint now_;
  std::int64_t revision_ = 0;
  std::int64_t last_written_ = 0;
  std::uint32_t unread_ = 0;
  bool all_ = true;
  bool pass_over_ = false;
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace interlock::etcd
