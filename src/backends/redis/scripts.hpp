// The Lua scripts, and what a claim looks like to them. scripts/*.lua say what they do.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/keys.hpp"
#include "backends/redis/protocol.hpp"
#include "interlock/backend.hpp"

namespace interlock::redis {

struct Script {
  std::string text;
  std::string sha1;  ///< in hexadecimal
};

/// One script of several files.
Script make_script(std::initializer_list<std::string_view> files);

struct Scripts {
  Script acquire;
  Script renew;
  Script release;
  Script inspect;

  static const Scripts& all();
};

/// Of the records, in their flags. It moves with every change of what a lock's keys hold.
inline constexpr std::uint64_t kFormat = 1;

struct ClaimStyle {
  std::string fence;    ///< the key of the counter
  std::string channel;  ///< where to wake whoever asks
  std::string_view publish = "PUBLISH";
  bool in_cluster = false;  ///< every key is named, so that the server can see if one is missing
  bool in_full = false;  ///< all arguments of acquire are always there, and more words may follow
};

/// The words of one call of a script, after its name: number of keys, keys, arguments.
Words words_of(const Claim& claim, bool queue, const KeyNames& names, const ClaimStyle& style);
/// The same for release, which needs less.
Words release_words(const Claim& claim, const KeyNames& names, const ClaimStyle& style);
/// EVALSHA, or (in full) EVAL.
std::string call(const Script& script, const Words& words, bool in_full);

Answer acquire_answer(const redisReply& reply, const Claim& claim, const std::string& node);
Answer release_answer(const redisReply& reply);

Words inspect_words(const std::string& resource, const KeyNames& names);
/// What `inspect.lua` said. `shows_foreign`: also a lock of another program. Throws Error (refused) if a record is of
/// another format.
ResourceState to_state(const redisReply& reply, const std::string& resource, bool shows_foreign);

}  // namespace interlock::redis
