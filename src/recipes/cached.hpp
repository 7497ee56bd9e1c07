// What is in the cache: the value, and when it was made, if somebody wanted to know.
//
// A stamped value is `interlock:1 <made, ms since 1970> <took, ms>\n<value>`. Others are as they are,
// except that one that begins like a stamp is stamped, too: so what is read is never in doubt.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "interlock/single_flight.hpp"

namespace interlock::flights {

class Cached {
 public:
  explicit Cached(std::string bytes);

  /// As it is in the cache.
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string value() && { return std::move(bytes_.erase(0, value_at_)); }
  /// Nothing if there is no stamp.
  [[nodiscard]] std::optional<std::chrono::milliseconds> made() const noexcept { return made_; }
  [[nodiscard]] std::chrono::milliseconds took() const noexcept { return took_; }

 private:
  std::string bytes_;
  std::size_t value_at_ = 0;
  std::optional<std::chrono::milliseconds> made_;
  std::chrono::milliseconds took_{};
};

/// Whether a value is still good, and when to make the next one.
class Freshness {
 public:
  explicit Freshness(const SingleFlightOptions& options) : options_(options) {}

  /// The bytes to put into the cache.
  [[nodiscard]] std::string seal(const std::string& value, Duration took) const;
  /// It may be given out.
  [[nodiscard]] bool usable(const Cached& cached) const;
  /// It is time to make a new one. `luck` is random, above 0 and up to 1: the smaller, the sooner.
  [[nodiscard]] bool due(const Cached& cached, double luck) const;

 private:
  [[nodiscard]] std::chrono::milliseconds now() const;
  /// How long ago it was made; without a stamp, it has just ceased to be fresh.
  [[nodiscard]] std::chrono::milliseconds age(const Cached& cached) const;

  const SingleFlightOptions& options_;
};

}  // namespace interlock::flights
