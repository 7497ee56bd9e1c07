// What this client knows of its own claims, so that it need not ask: where they stand, and when each
// of them has to be cleaned up because nobody asks for it any more.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interlock/claim.hpp"

namespace interlock::etcd {

/// A claim that is held.
struct Hold {
  Claim claim{};
  std::vector<std::string> keys{};      ///< of each part
  std::vector<std::int64_t> created{};  ///< and since when
  std::vector<std::uint64_t> fences{};
  std::int64_t written = 0;  ///< when all of them were last written
  std::int64_t lease = 0;
  TimePoint since{};
  TimePoint expires{};  ///< nobody takes it before
};

/// A claim in line.
struct Wait {
  Claim claim{};
  std::vector<std::string> keys{};  ///< its own
  std::int64_t created = 0;         ///< all of them
  std::int64_t seen = 0;            ///< at this revision it looked
  TimePoint asked{};
  std::uint32_t place = 0;
  /// Whom it waits for: while that key stands as it is, nothing has changed.
  struct Ahead {
    std::string key{};
    std::int64_t created = 0;
    std::int64_t written = 0;  ///< 0: no matter when, it waits as well
    TimePoint expires = TimePoint::max();
    std::string next{};  ///< the key that it gets when it is granted, and still in the way
  };
  std::optional<Ahead> ahead{};
};

/// Thread-safe.
class Book {
 public:
  /// A call for an owner, to acquire or to clean up, until it has its answer. If another one begins
  /// before that, this one changes nothing any more.
  struct CallOf {
    Owner owner{};
    std::uint64_t number = 0;
    std::shared_ptr<void> under_way{};  ///< whoever has this, answers
  };
  /// And whether there is another one without an answer.
  [[nodiscard]] std::pair<CallOf, bool> begin(const Owner& owner);
  [[nodiscard]] bool is_last(const CallOf& call) const;

  void put(Hold hold);
  void put(Wait wait);
  [[nodiscard]] std::optional<Hold> hold(const Owner& owner) const;
  /// Held, in line, or in doubt.
  [[nodiscard]] bool knows(const Owner& owner) const;
  /// And notes that it asked.
  [[nodiscard]] std::optional<Wait> wait(const Owner& owner, TimePoint now);
  /// It is not there any more. If it is in doubt, that is due now.
  void erase(const Owner& owner);
  /// It may be in the store, or get there yet: look again then, unless it is asked for or released
  /// before.
  void doubt(const Claim& claim, TimePoint look_again);
  /// Whether it was in doubt. Whoever takes the doubt has to settle it, or to book it again.
  [[nodiscard]] bool take_doubt(const Owner& owner);
  /// Whoever has this lease.
  [[nodiscard]] std::vector<Owner> on_lease(std::int64_t lease) const;

  struct Due {
    std::vector<Hold> holds{};  ///< not renewed in time
    struct Tidy {
      Claim claim;
      CallOf call;
    };
    std::vector<Tidy> silent{};    ///< in line
    std::vector<Tidy> in_doubt{};  ///< and not known to be there
  };
  /// Takes out what has to be cleaned up, unless somebody asks for it just now.
  Due due(TimePoint now, Duration silence);

 private:
  struct Doubt {
    Claim claim;
    TimePoint look_again;
  };
  [[nodiscard]] CallOf begin_call(const Owner& owner);

  mutable std::mutex mutex_;
  std::uint64_t calls_begun_ = 0;
  std::unordered_map<Owner, std::uint64_t> calls_;  ///< the last one, if it has no answer yet
  std::unordered_map<Owner, Hold> holds_;
  std::unordered_map<Owner, Wait> waits_;
  std::unordered_map<Owner, Doubt> doubts_;
};

}  // namespace interlock::etcd
