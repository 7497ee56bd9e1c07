#include "observe/exposition.hpp"

#include <array>
#include <charconv>

#include "core/text.hpp"

namespace interlock::observe {

namespace {

constexpr std::size_t kLongestValue = 1024;

void append_escaped(std::string& text, std::string_view value) {
  const auto safe = is_plain_utf8(value) ? std::string(value) : printable(value, kLongestValue);
  for (const char c : safe) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
}

}  // namespace

std::string format_number(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void Exposition::sample(Labels labels, double value, std::string_view suffix) {
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [name, of] : labels) {
    text_ += std::exchange(before, ',');
    text_.append(name).append("=\"");
    append_escaped(text_, of);
    text_ += '"';
  }
  if (before == ',') text_ += '}';
  text_.append(" ").append(format_number(value)).append("\n");
}

}  // namespace interlock::observe
