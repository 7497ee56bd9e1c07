// Commands and replies, with hiredis' formatter and reader.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
};

/// The bytes of one command.
std::string command(std::span<const std::string_view> words);
inline std::string command(std::initializer_list<std::string_view> words) {
  return command(std::span(words.begin(), words.size()));
}

inline std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view{} : std::string_view(reply.str, reply.len);
}
inline bool is_error(const redisReply& reply) { return reply.type == REDIS_REPLY_ERROR; }
inline std::span<redisReply* const> elements_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return {};
  return {reply.element, reply.elements};
}
/// An integer, also one that came as text.
std::int64_t number_of(const redisReply& reply);

/// The first word of an error, also of one that a script met: NOSCRIPT, WRONGTYPE, …
std::string_view error_code(std::string_view text);

/// An error reply in our words: what it means and what to do. `node`: who said so. `script`: the
/// text of the script that met it, to name what it may not call.
Error to_error(std::string_view text, const std::string& node, std::string_view script = {});

}  // namespace interlock::redis
