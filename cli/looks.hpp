// Looking at a store again and again, for watch and top. A store that does not answer is asked again.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "aside.hpp"
#include "screen.hpp"

namespace cli {

/// Looks on a thread of its own, so that keys and signals are heard while the store does not answer.
class Looks {
 public:
  /// `look` may throw Error. It runs only within pause(), and until take() or pause() are called next.
  Looks(std::function<void()> look, interlock::Duration interval);

  /// True: a look has ended well. Throws what the first look threw if asking again can't help.
  bool take();
  /// Why the last look failed; empty if it did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool answered() const { return answered_; }
  /// Until something changes; an exit status says that it is time to end.
  std::optional<int> pause(std::optional<Screen>& screen, const Signals& signals,
                           const std::function<void(char)>& on_key = {});
  /// As Aside::end().
  [[nodiscard]] int end(int status) { return aside_.end(status); }

 private:
  const std::function<void()> look_;
  const interlock::Duration interval_;
  interlock::TimePoint next_{};
  std::string problem_;
  bool answered_ = false;
  Aside aside_;
};

}  // namespace cli
