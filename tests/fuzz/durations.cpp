// Durations: "1m30s", and "00:01:30" in settings.
#include "config/settings_file.hpp"
#include "fuzz.hpp"
#include "interlock/duration.hpp"

namespace {

// What is shown has three digits, so it is another duration. That one has a text of its own.
void shows(interlock::Duration value) {
  fuzz::require(value >= interlock::Duration::zero(), "no text is a negative duration");
  const auto text = interlock::format_duration(value);
  const auto again = fuzz::accepted([&] { return interlock::parse_duration(text); });
  fuzz::require(again.has_value(), "what is shown of a duration is a duration: " + text);
  fuzz::require(interlock::format_duration(*again) == text,
                "it has the same text: " + text + ", " + interlock::format_duration(*again));
  (void)interlock::format_duration(-value);
}

}  // namespace

void fuzz::run(std::string_view input) {
  if (const auto value = accepted([&] { return interlock::parse_duration(input); })) {
    shows(*value);
    const auto span = interlock::config::parse_time_span(std::string(input));
    require(span == *value, "settings read durations as the command does");
  } else if (const auto span =
                 accepted([&] { return interlock::config::parse_time_span(std::string(input)); })) {
    require(input.find(':') != input.npos, "a time span has a colon");
    shows(*span);
  }
}
