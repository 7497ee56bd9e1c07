// A postgres:// URL, taken apart: where the database is, how to get in, and how to lock there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/link.hpp"
#include "interlock/backend.hpp"

namespace interlock::postgres {

/// What pg_stat_activity shows of every connection.
inline constexpr const char* kTitle = "interlock";

struct Settings {
  enum class Kind : std::uint8_t { advisory, lease };
  /// Advisory mode: how a waiter learns that it is its turn. It is told; or, one of a client's, it blocks
  /// in a session of its own; or the one first, and the other where locks change hands often.
  enum class Waiting : std::uint8_t { both, told, blocks };
  using Hosts = std::vector<std::pair<std::string, std::string>>;

  Kind kind = Kind::advisory;
  std::string prefix;
  std::string where;  ///< without secrets
  Link::Keywords keywords;
  Hosts hosts;
  Hosts listen;                    ///< lease mode: where to listen, if not there
  Link::Keywords listen_keywords;  ///< the same as the others, but for TLS
  bool polls = false;              ///< lease mode: never listens
  bool session_pooler = false;     ///< advisory mode: the pooler in between keeps sessions
  Waiting waiting = Waiting::both;
  Duration call_timeout = std::chrono::seconds(5);
  std::vector<std::string> warnings;

  /// Throws Error (invalid).
  static Settings from(Url url);
};

/// The 64 bits that stand for a name, in every build and language: the first eight bytes of the
/// SHA-256 of prefix and name, as a signed number, most significant byte first.
std::int64_t id_of(std::string_view prefix, std::string_view name);

}  // namespace interlock::postgres
