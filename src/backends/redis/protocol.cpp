#include "backends/redis/protocol.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/text.hpp"

namespace interlock::redis {

namespace {

struct Meaning {
  std::string_view code;
  Errc errc;
  const char* words;
};

constexpr std::array kMeanings{
    Meaning{"NOAUTH", Errc::refused, "the server wants a password, and the URL has none"},
    Meaning{"WRONGPASS", Errc::refused, "the server does not know this user or password"},
    Meaning{"NOPERM", Errc::refused,
            "the server's access list lacks a right for this user, and docs/redis.md has all it "
            "needs"},
    Meaning{
        "WRONGTYPE", Errc::wrong_kind,
        "its key is held by another kind of lock, or is not a lock; use another name or prefix"},
    Meaning{"OOM", Errc::refused, "the server's memory is full (maxmemory); nothing was changed"},
    Meaning{"MISCONF", Errc::refused, "the server can't save its data and takes no changes"},
    Meaning{"LOADING", Errc::unreachable, "the server is loading its data"},
    Meaning{"READONLY", Errc::unreachable, "the server is a replica and takes no changes"},
    Meaning{"MASTERDOWN", Errc::unreachable, "the server is a replica without its master"},
    Meaning{"NOREPLICAS", Errc::unreachable, "too few replicas are connected to the server"},
    Meaning{"CROSSSLOT", Errc::refused, "the server is part of a cluster: use redis+cluster://"},
    Meaning{"MOVED", Errc::refused, "the server is part of a cluster: use redis+cluster://"},
    Meaning{"CLUSTERDOWN", Errc::unreachable, "the cluster does not serve this key now"},
    Meaning{"TRYAGAIN", Errc::unreachable, "the cluster is moving this key"},
    Meaning{"BUSY", Errc::unreachable, "the server is busy with somebody's script"},
    Meaning{"UNKILLABLE", Errc::unreachable, "the server is busy with somebody's script"},
};

bool is_code(std::string_view word) {
  return word.size() > 1 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// What servers before 7.2 say instead of NOPERM, and not what about.
constexpr std::string_view kScriptMayNot = "The user executing the script can't";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The commands that are called in the line that an error names: "…, on @user_script:12."
std::string called_at(std::string_view text, std::string_view script) {
  constexpr std::string_view kWhere = "@user_script:";
  constexpr std::string_view kCall = "call(";
  const auto where = text.rfind(kWhere);
  if (where == std::string_view::npos) return {};
  const auto digits = text.substr(where + kWhere.size());
  int line = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  for (; line > 1 && contains(script, "\n"); --line) script.remove_prefix(script.find('\n') + 1);
  script = script.substr(0, script.find('\n'));
  std::string names;
  for (auto at = script.find(kCall); at != std::string_view::npos; at = script.find(kCall, at)) {
    at += kCall.size();
    const bool named = script.substr(at).starts_with('\'');
    const auto name = named ? script.substr(at + 1, script.find('\'', at + 1) - at - 1) : "PUBLISH";
    names += (names.empty() ? "+" : " or +") + std::string(name);
  }
  return names;
}

// Which one, as far as it can be told.
std::string missing_right(std::string_view text, std::string_view script) {
  if (contains(text, "channel")) return ": a channel pattern, as &PREFIXwake:*";
  const auto called = called_at(text, script);
  const auto by = called.empty() ? "" : " for " + called;
  if (contains(text, "keys")) return ": a key pattern, as ~PREFIX* and ~{PREFIX*" + by;
  return called.empty() ? "" : ": " + called;
}

}  // namespace

namespace {

void append_size(std::string& bytes, char kind, std::size_t size) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), size).ptr;
  bytes += kind;
  bytes.append(text.data(), end);
  bytes += "\r\n";
}

}  // namespace

void Words::begin(std::size_t size) { append_size(bytes_, '$', size); }

std::string command(std::initializer_list<std::string_view> words, const Words& more) {
  std::string bytes;
  std::size_t size = 16 + more.bytes().size();
  for (const auto word : words) size += word.size() + 16;
  bytes.reserve(size);
  append_size(bytes, '*', words.size() + more.count());
  for (const auto word : words) {
    append_size(bytes, '$', word.size());
    bytes += word;
    bytes += "\r\n";
  }
  bytes += more.bytes();
  return bytes;
}

// It never gets longer, and a code says more than the password that looks like it.
void hide_in_error(redisReply& error, const core::Secrets& secrets) {
  const auto text = text_of(error);
  const auto code = text.substr(0, std::min(text.find(' '), text.size()));
  const bool known = code == "ASK" || code == "NOSCRIPT" || code == "ERR" ||
                     std::any_of(kMeanings.begin(), kMeanings.end(),
                                 [&](const Meaning& meaning) { return meaning.code == code; });
  const auto kept = known ? code.size() : 0;
  const auto hidden = secrets.hide(text.substr(kept)).substr(0, text.size() - kept);
  std::copy(hidden.begin(), hidden.end(), error.str + kept);
  error.len = kept + hidden.size();
  error.str[error.len] = '\0';
}

std::int64_t number_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER)
    return std::clamp<std::int64_t>(reply.integer, -kLargestNumber, kLargestNumber);
  const auto text = text_of(reply);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr auto most = static_cast<double>(kLargestNumber);
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(std::clamp(value, -most, most));
}

std::string_view error_code(std::string_view text) {
  const auto word = text.substr(0, text.find(' '));
  if (word != "ERR") return word;
  if (contains(text, kScriptMayNot)) return "NOPERM";
  // Before 7.0: "ERR Error running script (call to f_…): @user_script:1: WRONGTYPE Operation …"
  const auto script = text.find("@user_script");
  if (script == std::string_view::npos) return word;
  for (auto rest = text.substr(script); !rest.empty();) {
    const auto space = std::min(rest.find(' '), rest.size());
    if (is_code(rest.substr(0, space)) && rest.substr(0, space) != "ERR")
      return rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return word;
}

Error to_error(std::string_view text, const std::string& node, std::string_view script) {
  const Error::Where where{.resource = {}, .node = node, .maybe_held = false};
  const auto code = error_code(text);
  const auto said = " (" + printable(text, 200) + ")";
  const auto known = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [&](const Meaning& m) { return m.code == code; });
  if (text.find("access a non local key") != std::string_view::npos)
    return {Errc::unreachable, "the cluster is moving this key" + said, where};
  if (known == kMeanings.end()) return {Errc::refused, "the server refused" + said, where};
  const auto which = code == "NOPERM" ? missing_right(text, script) : "";
  return {known->errc, known->words + which + said, where};
}

}  // namespace interlock::redis
