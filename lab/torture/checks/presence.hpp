// Who may have been in another's way. Counts more than there was, never less: an answer "busy" while nobody was
// there is then surely wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checks/index.hpp"

namespace torture::checks {

/// A claim that may have been held or waited for, from its first message until the store has surely forgotten it.
struct Presence {
  const Call* call = nullptr;
  std::int64_t from = 0, to = 0;
  Mode mode = Mode::exclusive;
};

class Presences {
 public:
  explicit Presences(const Index& index);

  /// Somebody else's that conflicts with what this call or this lease asks for, at some moment between; or null.
  [[nodiscard]] const Presence* rival(const Call& call, std::int64_t from, std::int64_t to) const;

 private:
  [[nodiscard]] std::vector<Part> parts_of(const Call& call) const;
  [[nodiscard]] std::int64_t end_of(const Call& call) const;
  [[nodiscard]] std::int64_t end_of_lease(const Call& call) const;

  const Index& index_;
  std::map<std::string, std::vector<const Belief*>> beliefs_;  ///< of each call
  std::map<std::string, std::vector<Presence>> by_resource_;
};

}  // namespace torture::checks
