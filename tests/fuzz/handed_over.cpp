// What `interlock run`, its guardian and the processes of a simulation hand each other: texts that end with a zero, sets of
// signals, and until when the lease lasts.
#include <cstring>

#include "fuzz.hpp"
#include "guardian.hpp"
#include "zero_ended.hpp"

namespace {

template <class Number>
Number take(std::string_view& input) {
  Number number{};
  std::memcpy(&number, input.data(), std::min(sizeof number, input.size()));
  input.remove_prefix(std::min(sizeof number, input.size()));
  return number;
}

}  // namespace

void fuzz::run(std::string_view input) {
  const auto texts = cli::split_zero_ended(input);
  const auto all = cli::join_zero_ended(texts);
  require(all == input || all == std::string(input) + '\0', "no text is lost");
  require(cli::split_zero_ended(all) == texts, "texts arrive as they were sent");

  std::atomic<cli::SignalSet> set = take<cli::SignalSet>(input);
  const cli::SignalSet before = set;
  cli::SignalSet taken = 0;
  while (const auto signal = cli::take_signal(set)) {
    require(*signal >= 1 && *signal <= 64, "a signal has a number");
    require((taken & cli::signal_bit(*signal)) == 0, "each is taken once");
    taken |= cli::signal_bit(*signal);
  }
  require(taken == before, "all are taken");

  constexpr std::int64_t kYear = 366LL * 24 * 3600 * 1'000'000'000;
  const auto limited = [](std::int64_t number, std::int64_t most) {
    return interlock::Duration(static_cast<std::int64_t>(static_cast<std::uint64_t>(number) %
                                                         static_cast<std::uint64_t>(most)));
  };
  const auto ttl = limited(take<std::int64_t>(input), kYear);
  const interlock::TimePoint valid_until(limited(take<std::int64_t>(input), 100 * kYear));
  const auto ending = cli::Ending::of(valid_until, ttl);
  require(ending.term_at <= ending.kill_at && ending.kill_at <= valid_until,
          "a command is asked to end before it is killed, and dead when its lease ends");
}
