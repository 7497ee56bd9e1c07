// Commands and replies, with hiredis' formatter and reader.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/secrets.hpp"
#include "interlock/error.hpp"

namespace interlock::redis {

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Response = std::unique_ptr<redisReply, FreeReply>;

/// What came of a request: a reply (which may be an error), or nothing.
struct Outcome {
  Response reply{};
  std::optional<Error> failure{};  ///< why there is no reply
  std::uint64_t connection = 0;    ///< of its Link, the one that brought the reply
};

/// Words of a command, as they go to the server. Written by hand, since every lock pays for it.
class Words {
 public:
  /// One word, of several pieces.
  template <class... Pieces>
  void add(const Pieces&... pieces) {
    ++count_;
    begin((std::string_view(pieces).size() + ...));
    (bytes_.append(std::string_view(pieces)), ...);
    bytes_ += "\r\n";
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

 private:
  void begin(std::size_t size);

  std::size_t count_ = 0;
  std::string bytes_;
};

/// The bytes of one command: some words, and then `more`.
std::string command(std::initializer_list<std::string_view> words, const Words& more = {});

inline std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view{} : std::string_view(reply.str, reply.len);
}
/// Takes what is secret out of a server's error. Its code stays.
void hide_in_error(redisReply& error, const core::Secrets& secrets);
inline bool is_error(const redisReply& reply) { return reply.type == REDIS_REPLY_ERROR; }
inline std::span<redisReply* const> elements_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return {};
  return {reply.element, reply.elements};
}
/// Of those that scripts can tell: in Lua, whole numbers are exact up to there.
inline constexpr std::int64_t kLargestNumber = std::int64_t{1} << 53U;
/// An integer, also one that came as text; of a larger one than that, the largest.
std::int64_t number_of(const redisReply& reply);

/// The first word of an error, also of one that a script met: NOSCRIPT, WRONGTYPE, …
std::string_view error_code(std::string_view text);

/// The server does not know the script (any more): it has to be sent in full.
inline bool is_unknown_script(const Outcome& outcome) {
  return outcome.reply && is_error(*outcome.reply) &&
         error_code(text_of(*outcome.reply)) == "NOSCRIPT";
}

/// An error reply in our words: what it means and what to do. `node`: who said so. `script`: the
/// text of the script that met it, to name what it may not call.
Error to_error(std::string_view text, const std::string& node, std::string_view script = {});

}  // namespace interlock::redis
