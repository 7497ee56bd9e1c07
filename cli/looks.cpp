#include "looks.hpp"

#include <utility>

#include "interlock/error.hpp"

namespace cli {

using interlock::BootClock;

Looks::Looks(std::function<void()> look, interlock::Duration interval)
    : look_(std::move(look)), interval_(interval) {}

bool Looks::take() {
  try {
    if (!aside_.finish()) return false;
    answered_ = true;
    problem_.clear();
  } catch (const interlock::Error& error) {
    if (!answered_ && !error.retryable()) throw;
    problem_ = error.what();
  }
  next_ = BootClock::now() + interval_;
  return problem_.empty();
}

std::optional<int> Looks::pause(std::optional<Screen>& screen, const Signals& signals,
                                const std::function<void(char)>& on_key) {
  if (!aside_.busy() && BootClock::now() >= next_) aside_.start(look_);
  const auto time = aside_.busy() ? interval_ : next_ - BootClock::now();
  return cli::pause(screen, signals, time, on_key, aside_.fd());
}

}  // namespace cli
