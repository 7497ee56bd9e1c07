// Writes the Prometheus text format, version 0.0.4.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "interlock/clock.hpp"

namespace interlock::observe {

class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  /// Everything up to the next one is of this family. `type`: counter, gauge, histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  /// `suffix`: "_bucket" and the like of a histogram.
  void sample(Labels labels, double value, std::string_view suffix = "");

  [[nodiscard]] std::string& text() noexcept { return text_; }

 private:
  std::string name_;
  std::string text_;
};

/// The format's unit of time.
inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The shortest form that reads back as the same number.
std::string format_number(double value);

}  // namespace interlock::observe
