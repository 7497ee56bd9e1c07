#include "backends/redis/keys.hpp"

#include <array>

#include "core/text.hpp"
#include "interlock/error.hpp"

namespace interlock::redis {

namespace {

constexpr std::string_view kQueue = "queue";

// CRC-16/XMODEM, as the cluster specification says.
std::uint16_t crc16(std::string_view text, std::uint16_t crc = 0) noexcept {
  for (const char c : text) {
    crc = static_cast<std::uint16_t>(crc ^ (static_cast<unsigned char>(c) << 8U));
    for (int bit = 0; bit < 8; ++bit) {
      const bool high = (crc & 0x8000U) != 0;
      crc = static_cast<std::uint16_t>(crc << 1U);
      if (high) crc ^= 0x1021U;
    }
  }
  return crc;
}

// What stands between the first brace and the next closing one, if that is anything.
std::optional<std::string_view> hash_tag(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return std::nullopt;
  const auto close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return std::nullopt;
  return key.substr(open + 1, close - open - 1);
}

// Some short text after `begin` that lies in this slot.
std::string text_in_slot(const std::string& begin, std::uint16_t slot) {
  for (unsigned n = 0;; ++n) {
    auto text = begin + std::to_string(n);
    if (crc16(text) % kSlots == slot) return text;
  }
}

std::string side_of(const std::string& lock) {
  if (lock.find_first_of("{}") == std::string::npos) return "{" + lock + "}:";
  const auto tag = hash_tag(lock);
  return "{" + (tag ? std::string(*tag) : text_in_slot("", slot_of(lock))) + "}" + lock + ":";
}

// For a glob pattern.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

std::uint16_t slot_of(std::string_view key) noexcept {
  return crc16(hash_tag(key).value_or(key)) % kSlots;
}

KeyNames::KeyNames(std::string prefix) : prefix_(std::move(prefix)) {
  if (prefix_.starts_with('{') || prefix_.starts_with('}')) {
    throw Error(Errc::invalid, "the prefix of a Redis store can't begin with a brace");
  }
  if (!is_plain_utf8(prefix_) || prefix_.size() > 256) {
    throw Error(Errc::invalid,
                "the prefix of a Redis store has to be UTF-8 without control characters, of at "
                "most 256 bytes");
  }
}

KeyNames::Lock KeyNames::of(std::string_view resource) const {
  Lock keys{.lock = prefix_ + std::string(resource), .queue = {}, .who = {}};
  if (keys.lock.starts_with('{')) {
    throw Error(Errc::invalid,
                "without a prefix, a name can't begin with a brace in Redis; choose one with "
                "?prefix=",
                {.resource = std::string(resource), .node = {}, .maybe_held = false});
  }
  const auto side = side_of(keys.lock);
  keys.queue = side + std::string(kQueue);
  keys.who = side + "who";
  return keys;
}

std::string KeyNames::side(std::string_view resource) const {
  return side_of(prefix_ + std::string(resource));
}

std::string KeyNames::fence() const { return "{" + prefix_ + "}:fence"; }

std::string KeyNames::fence(std::string_view text_in_slot) {
  return "{" + std::string(text_in_slot) + "}:fence";
}

std::vector<std::string> texts_in_slots(const std::string& begin) {
  std::vector<std::string> texts(kSlots);
  std::size_t missing = kSlots;
  const auto crc = crc16(begin);
  for (unsigned n = 0; missing > 0; ++n) {
    const auto number = std::to_string(n);
    auto& text = texts[crc16(number, crc) % kSlots];
    if (!text.empty()) continue;
    text = begin + number;
    --missing;
  }
  return texts;
}

std::string KeyNames::pattern(std::string_view resource_prefix) const {
  return "*" + escaped(prefix_) + escaped(resource_prefix) + "*";
}

std::optional<std::string> KeyNames::resource_of(std::string_view key) const {
  if (key.starts_with('{')) {
    const auto tail = ":" + std::string(kQueue);
    if (!key.ends_with(tail)) return std::nullopt;
    key.remove_suffix(tail.size());
    const auto close = key.find('}');
    if (close == std::string_view::npos) return std::nullopt;
    key = close + 1 == key.size() ? key.substr(1, close - 1) : key.substr(close + 1);
  }
  if (!key.starts_with(prefix_) || key.size() == prefix_.size()) return std::nullopt;
  return std::string(key.substr(prefix_.size()));
}

}  // namespace interlock::redis
