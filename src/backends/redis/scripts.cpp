#include "backends/redis/scripts.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "backends/redis/script_texts.hpp"
#include "core/foreign.hpp"
#include "core/format.hpp"
#include "core/who.hpp"

namespace interlock::redis {

namespace {

static_assert(kFormat == INTERLOCK_FORMAT, "CMakeLists.txt names another format");

constexpr std::array kOtherKeys = {"holders", "ends", "waiting"};
constexpr std::string_view kForeign = "another program's lock, not one of Interlock";

char letter(Mode mode) { return mode == Mode::exclusive ? 'e' : mode == Mode::shared ? 's' : 'n'; }

Mode mode_of(std::string_view text) {
  return text.starts_with('e')   ? Mode::exclusive
         : text.starts_with('s') ? Mode::shared
                                 : Mode::slots;
}

std::string spec_of(const Part& part) {
  return std::string(1, letter(part.mode)) + std::to_string(part.slots) + ":" +
         std::to_string(part.capacity) + (part.ancestor ? ":1" : ":0");
}

template <class Number>
Number to_number(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Record {
  Entry entry;
  std::uint64_t number = 0;  // microseconds of the server's clock
  std::uint64_t since = 0;   // the same, where the number is none: on a Redlock's node
  std::uint32_t capacity = 0;
  std::uint64_t format = 0;
  std::int64_t ttl = 0;  // in ms: no holder has more left, whatever the server's clock says
};

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Of a record of another format: who it is, and the format.
std::optional<Record> parse_record(std::string_view text) {
  Record record;
  record.number = to_number<std::uint64_t>(next_line(text));
  const auto owner = Owner::parse(next_line(text));
  const auto flags = next_line(text);
  if (const auto colon = flags.find(':'); colon != flags.npos && colon > 2)
    record.format = to_number<std::uint64_t>(flags.substr(2, colon - 2));
  const auto spec = next_line(text);
  if (!owner || record.number == 0) return std::nullopt;
  record.entry.owner = *owner;
  if (record.format != kFormat) return record;
  const auto colon = spec.find(':');
  if (spec.size() < 6 || colon == 0 || colon == spec.npos) return std::nullopt;
  auto& entry = record.entry;
  entry.mode = mode_of(spec);
  entry.ancestor = spec.ends_with('1');
  entry.slots = to_number<std::uint32_t>(spec.substr(1, colon - 1));
  record.capacity = to_number<std::uint32_t>(spec.substr(colon + 1));
  entry.priority = to_number<std::int32_t>(next_line(text));
  next_line(text);  // the channel
  entry.who.identity = next_line(text);
  read_label_and_names(next_line(text), entry.who);
  entry.who.host = next_line(text);
  entry.who.pid = to_number<std::int64_t>(next_line(text));
  const auto tied = next_line(text);
  entry.who.tied = !tied.starts_with('0');
  record.ttl = to_number<std::int64_t>(tied.substr(std::min<std::size_t>(tied.size(), 2)));
  record.since = to_number<std::uint64_t>(next_line(text)) * 1000;
  return record;
}

void require_format(const Record& record) {
  if (record.format != kFormat)
    throw Error(Errc::refused, core::other_format(record.format, kFormat));
}

using core::bounded;
using std::chrono::milliseconds;

Duration since(std::uint64_t number, std::int64_t now_ms) {
  return std::max(Duration::zero(),
                  bounded<milliseconds>(now_ms - static_cast<std::int64_t>(number / 1000)));
}

}  // namespace

Script make_script(std::initializer_list<std::string_view> files) {
  Script script;
  for (const auto file : files) script.text += file;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(script.text.data(), script.text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  static constexpr char kHex[] = "0123456789abcdef";
  for (unsigned i = 0; i < size; ++i) script.sha1 += {kHex[digest[i] >> 4U], kHex[digest[i] & 15U]};
  return script;
}

const Scripts& Scripts::all() {
  static const auto* const scripts = new Scripts{
      .acquire = make_script({kAcquireSimpleLua, kRowsLua, kAcquireLua}),
      .renew = make_script({kRenewSimpleLua, kRowsLua, kRenewLua}),
      .release = make_script({"local covers = false\n", kReleaseSimpleLua, kRowsLua, kReleaseLua}),
      .inspect = make_script({kInspectLua}),
  };
  return *scripts;
}

namespace {

void add_keys(Words& words, const Claim& claim, const KeyNames& names, const ClaimStyle& style,
              bool fence) {
  const std::size_t others = style.in_cluster ? kOtherKeys.size() : 0;
  words.reserve(512 * claim.parts.size());
  words.add(std::to_string(claim.parts.size() * (3 + others) + (fence ? 1 : 0)));
  for (const auto& part : claim.parts) {
    const auto side = names.side(part.resource);
    words.add(names.prefix(), part.resource);
    words.add(side, "queue");
    words.add(side, "who");
  }
  if (fence) words.add(style.fence);
  if (!style.in_cluster) return;
  for (const auto& part : claim.parts) {
    const auto side = names.side(part.resource);
    for (const auto* key : kOtherKeys) words.add(side, key);
  }
}

// Our own claim on one lock in this mode: the ways that are made short. Somebody else's (an eviction)
// has no host.
bool is_simple(const Claim& claim, Mode mode) {
  return claim.parts.size() == 1 && claim.parts[0].mode == mode && claim.who->identity.empty() &&
         claim.instead_of.empty() && !claim.who->host.empty();
}

void add_arguments(Words& words, const Claim& claim, bool queue, const ClaimStyle& style) {
  const Who& who = *claim.who;
  words.add(claim.owner.to_string());
  const auto ttl = std::to_string(std::chrono::ceil<milliseconds>(claim.ttl).count());
  words.add(ttl);
  words.add(queue ? "1" : "0", style.publish.substr(0, 1), std::to_string(kFormat), ":",
            claim.instead_of.empty() ? "" : claim.instead_of.to_string(), "\n",
            spec_of(claim.parts.front()), "\n", std::to_string(claim.priority), "\n", style.channel,
            "\n", who.identity, "\n", label_and_names(who), "\n", who.host, "\n",
            std::to_string(who.pid), who.tied ? "\n1:" : "\n0:", ttl);
  if (is_simple(claim, Mode::exclusive)) {
    if (style.in_full) words.add("-");
    return;
  }
  if (!style.in_full && is_simple(claim, Mode::shared)) return words.add("s");
  std::string others;
  for (std::size_t i = 1; i < claim.parts.size(); ++i) others += spec_of(claim.parts[i]) + "\n";
  words.add(others);
}

}  // namespace

Words words_of(const Claim& claim, bool queue, const KeyNames& names, const ClaimStyle& style) {
  Words words;
  add_keys(words, claim, names, style, true);
  add_arguments(words, claim, queue, style);
  return words;
}

Words release_words(const Claim& claim, const KeyNames& names, const ClaimStyle& style) {
  Words words;
  add_keys(words, claim, names, style, false);
  if (is_simple(claim, Mode::exclusive) || (!style.in_full && is_simple(claim, Mode::shared))) {
    words.add(claim.owner.to_string());
    words.add("0", style.publish.substr(0, 1));
  } else {
    add_arguments(words, claim, false, style);
  }
  return words;
}

std::string call(const Script& script, const Words& words, bool in_full) {
  return in_full ? command({"EVAL", script.text}, words) : command({"EVALSHA", script.sha1}, words);
}

Answer acquire_answer(const redisReply& reply, const Claim& claim, const std::string& node) {
  if (reply.type == REDIS_REPLY_INTEGER) {
    return {.verdict = Verdict::granted,
            .fences = {Fence{static_cast<std::uint64_t>(reply.integer)}}};
  }
  const auto words = elements_of(reply);
  const auto first = words.empty() ? std::string_view{} : text_of(*words[0]);
  if (first == "granted") {
    Answer answer{.verdict = Verdict::granted};
    for (const auto* fence : words.subspan(1))
      answer.fences.push_back(Fence{static_cast<std::uint64_t>(number_of(*fence))});
    return answer;
  }
  if (first == "queued" && words.size() == 3) {
    return {.verdict = Verdict::queued,
            .fences = {},
            .place = static_cast<std::uint32_t>(number_of(*words[1])),
            .look_again = bounded<milliseconds>(number_of(*words[2]))};
  }
  if (first == "format" && words.size() == 3) {
    const auto part = std::clamp<std::int64_t>(number_of(*words[1]), 1,
                                               static_cast<std::int64_t>(claim.parts.size())) -
                      1;
    return Answer::failed(
        {Errc::refused,
         core::other_format(to_number<std::uint64_t>(text_of(*words[2])), kFormat),
         {.resource = claim.parts[static_cast<std::size_t>(part)].resource,
          .node = node,
          .maybe_held = false}});
  }
  if (first == "busy") return {.verdict = Verdict::busy};
  if (first == "lost") return {.verdict = Verdict::lost};
  if (first == "wrong" && words.size() == 5) {
    const auto part = std::clamp<std::int64_t>(number_of(*words[1]), 1,
                                               static_cast<std::int64_t>(claim.parts.size())) -
                      1;
    const Part& asked = claim.parts[static_cast<std::size_t>(part)];
    const Error::Where where{.resource = asked.resource, .node = node, .maybe_held = false};
    const auto mode = mode_of(text_of(*words[2]));
    const auto use = mode == Mode::slots
                         ? "a semaphore of capacity " + std::string(text_of(*words[3]))
                         : "a lock (" + std::string(to_string(mode)) + ")";
    const auto label = std::string(label_in(text_of(*words[4])));
    const auto by = label.empty() ? "" : " by '" + label + "'";
    if (mode == Mode::slots && asked.mode == Mode::slots) {
      return Answer::failed({Errc::wrong_capacity,
                             "it is in use as " + use + ", and " + std::to_string(asked.capacity) +
                                 " was asked for; all clients have to agree",
                             where});
    }
    return Answer::failed(
        {Errc::wrong_kind,
         "it is in use as " + use + by + "; use another name, or wait until nobody uses it",
         where});
  }
  return Answer::failed({Errc::refused,
                         "the server's answer makes no sense: is its script another "
                         "version's?",
                         {.resource = {}, .node = node, .maybe_held = true}});
}

Answer release_answer(const redisReply& reply) {
  const auto found = number_of(reply);
  return {.verdict = found == 1 ? Verdict::granted : found == 2 ? Verdict::queued : Verdict::lost};
}

Words inspect_words(const std::string& resource, const KeyNames& names) {
  const auto keys = names.of(resource);
  Words words;
  words.add("3");
  words.add(keys.lock);
  words.add(keys.queue);
  words.add(keys.who);
  return words;
}

ResourceState to_state(const redisReply& reply, const std::string& resource, bool shows_foreign) {
  ResourceState state{.resource = resource};
  const auto all = elements_of(reply);
  if (all.size() != 7) return state;
  const auto now = number_of(*all[6]);
  const auto times = [](const redisReply& list) {
    std::map<std::string_view, std::int64_t> found;
    const auto words = elements_of(list);
    for (std::size_t i = 0; i + 1 < words.size(); i += 2)
      found[text_of(*words[i])] = number_of(*words[i + 1]);
    return found;
  };
  const auto add_holder = [&](Record record, std::int64_t left) {
    if (left <= 0) return;
    require_format(record);
    record.entry.fence = Fence{record.number};
    record.entry.age = since(record.since != 0 ? record.since : record.number, now);
    record.entry.remaining =
        bounded<milliseconds>(record.ttl > 0 ? std::min(left, record.ttl) : left);
    if (record.entry.mode == Mode::slots) state.capacity = record.capacity;
    state.holders.push_back(std::move(record.entry));
  };

  const auto value = text_of(*all[0]);
  const auto left = number_of(*all[1]);
  if (value == "+shared" || value == "+same" ||
      (value.starts_with("+slots:") && value.size() > 7)) {
    const auto ends = times(*all[4]);
    for (const auto* text : elements_of(*all[3])) {
      auto record = parse_record(text_of(*text));
      if (!record) continue;
      require_format(*record);
      const auto member =
          record->entry.owner.to_string() + ":" + std::to_string(record->entry.slots);
      const auto end = ends.find(member);
      if (end != ends.end()) add_holder(std::move(*record), end->second - now);
    }
    std::sort(state.holders.begin(), state.holders.end(), [](const Entry& a, const Entry& b) {
      return a.age != b.age ? a.age > b.age : a.owner < b.owner;
    });
  } else if (all[0]->type == REDIS_REPLY_STRING) {
    auto record = parse_record(text_of(*all[2]));
    if (record && record->entry.owner.to_string() == value) {
      add_holder(std::move(*record), left);
    } else if (shows_foreign) {
      Entry foreign;
      foreign.who.label = kForeign;
      foreign.remaining = left < 0 ? Duration::max() : bounded<milliseconds>(left);
      state.holders.push_back(std::move(foreign));
    }
  }

  std::map<std::string_view, Entry> queue;  // by ticket
  for (const auto* text : elements_of(*all[5])) {
    auto rest = text_of(*text);
    const auto ends =
        std::clamp(to_number<std::int64_t>(next_line(rest)), -kLargestNumber, kLargestNumber);
    const auto ticket = next_line(rest);
    auto record = parse_record(rest);
    if (!record || ends <= now) continue;
    require_format(*record);
    record->entry.age = since(record->number, now);
    record->entry.remaining = bounded<milliseconds>(ends - now);
    if (record->entry.mode == Mode::slots) state.capacity = record->capacity;
    queue.emplace(ticket, std::move(record->entry));
  }
  for (auto& [ticket, entry] : queue) state.waiters.push_back(std::move(entry));
  return state;
}

}  // namespace interlock::redis
