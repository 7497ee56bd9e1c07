#include "backends/postgres/claims.hpp"

#include <algorithm>
#include <charconv>

#include "backends/postgres/settings.hpp"
#include "core/foreign.hpp"
#include "core/who.hpp"

namespace interlock::postgres {

namespace {

using core::bounded;
using std::chrono::microseconds;

char letter(Mode mode) { return mode == Mode::exclusive ? 'e' : mode == Mode::shared ? 's' : 'n'; }

Mode mode_of(std::string_view text) {
  return text == "e" ? Mode::exclusive : text == "s" ? Mode::shared : Mode::slots;
}

template <class Number = std::int64_t>
Number number(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Of>
std::string list(const Claim& claim, Of of) {
  std::string text = "{";
  for (const auto& part : claim.parts)
    text += (text.size() > 1 ? "," : "") + std::to_string(of(part));
  return text + "}";
}

std::string ttl_of(const Claim& claim) {
  return std::to_string(std::chrono::ceil<microseconds>(claim.ttl).count());
}

void add_who(Parameters& parameters, const Claim& claim) {
  static const Who kNobody;
  const Who& who = claim.who ? *claim.who : kNobody;
  parameters.insert(parameters.end(), {who.identity, label_and_names(who), who.host,
                                       std::to_string(who.pid), who.tied ? "t" : "f"});
}

const Part& next_part(std::string_view& words, const Claim& claim) {
  const auto part = std::clamp<std::int64_t>(number(next_word(words)), 1,
                                             static_cast<std::int64_t>(claim.parts.size()));
  return claim.parts[static_cast<std::size_t>(part - 1)];
}

// "other PART PID HOST"
Answer held_in_other_mode(std::string_view words, const Claim& claim, const std::string& node) {
  const Part& asked = next_part(words, claim);
  const auto pid = std::string(next_word(words));
  return Answer::failed(
      {Errc::refused,
       (pid == "0" ? "a token" : "process " + pid) + " on " + std::string(words) +
           " holds it in the other mode of this store, and ?mode=advisory (the default) and "
           "?mode=lease don't wait for each other; use one mode for all that lock this name",
       {.resource = asked.resource, .node = node, .maybe_held = false}});
}

// "wrong PART MODE CAPACITY LABEL"
Answer wrong(std::string_view words, const Claim& claim, const std::string& node) {
  const Part& asked = next_part(words, claim);
  const auto mode = mode_of(next_word(words));
  const auto capacity = std::string(next_word(words));
  const Error::Where where{.resource = asked.resource, .node = node, .maybe_held = false};
  const auto use = mode == Mode::slots ? "a semaphore of capacity " + capacity
                                       : "a lock (" + std::string(to_string(mode)) + ")";
  if (mode == Mode::slots && asked.mode == Mode::slots) {
    return Answer::failed({Errc::wrong_capacity,
                           "it is in use as " + use + ", and " + std::to_string(asked.capacity) +
                               " was asked for; all clients have to agree",
                           where});
  }
  return Answer::failed({Errc::wrong_kind,
                         "it is in use as " + use + " by '" + std::string(label_in(words)) +
                             "'; use another name, or wait until nobody uses it",
                         where});
}

}  // namespace

Owner owner_of(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '-');
  return Owner::parse(digits).value_or(Owner{});
}

std::string ids_of(const Claim& claim, const std::string& prefix) {
  return list(claim, [&](const Part& part) { return id_of(prefix, part.resource); });
}

bool is_usual(const Claim& claim) {
  return claim.parts.size() == 1 && claim.parts[0].mode == Mode::exclusive &&
         claim.instead_of.empty() && (!claim.who || claim.who->identity.empty());
}

// Names have no line breaks.
void add_acquire(Parameters& parameters, const Claim& claim, bool queue,
                 const std::string& prefix) {
  std::string names;
  std::string modes;
  std::string ancestors;
  for (const auto& part : claim.parts) {
    if (!names.empty()) names += '\n';
    names += prefix + part.resource;
    modes += letter(part.mode);
    ancestors += part.ancestor ? '1' : '0';
  }
  parameters.insert(parameters.end(),
                    {claim.owner.to_string(), ids_of(claim, prefix), std::move(names),
                     std::move(modes), list(claim, [](const Part& part) { return part.slots; }),
                     list(claim, [](const Part& part) { return part.capacity; }),
                     std::move(ancestors), ttl_of(claim), queue ? "t" : "f",
                     claim.instead_of.to_string(), std::to_string(claim.priority)});
  add_who(parameters, claim);
}

void add_renew(Parameters& parameters, const Claim& claim, const std::string& prefix) {
  parameters.insert(parameters.end(),
                    {claim.owner.to_string(), ids_of(claim, prefix), ttl_of(claim)});
  add_who(parameters, claim);
}

void add_release(Parameters& parameters, const Claim& claim, const std::string& prefix) {
  parameters.insert(parameters.end(), {claim.owner.to_string(), ids_of(claim, prefix)});
}

void add_inspect(Parameters& parameters, const Query& query, const std::string& prefix) {
  std::string ids = "{";
  for (const auto& resource : query.resources)
    ids += (ids.size() > 1 ? "," : "") + std::to_string(id_of(prefix, resource));
  parameters.insert(parameters.end(), {ids + "}", prefix + query.prefix});
}

std::string names_of(const Claim& claim) {
  std::string names;
  for (const auto& part : claim.parts) names += (names.empty() ? "'" : ", '") + part.resource + "'";
  return names;
}

namespace {

std::string_view words_of(const Outcome& outcome) {
  return PQntuples(outcome.result.get()) == 1 ? text_at(*outcome.result, 0, 0) : std::string_view();
}

Answer answer_of(std::string_view words, const Claim& claim, const std::string& node) {
  const auto first = next_word(words);
  if (first == "granted") {
    Answer answer{.verdict = Verdict::granted};
    while (!words.empty()) answer.fences.push_back(Fence{number<std::uint64_t>(next_word(words))});
    return answer;
  }
  if (first == "queued") {
    Answer answer{.verdict = Verdict::queued};
    answer.place = number<std::uint32_t>(next_word(words));
    if (!words.empty()) answer.look_again = bounded<microseconds>(number(words));
    return answer;
  }
  if (first == "busy") return {.verdict = Verdict::busy};
  if (first == "lost") return {.verdict = Verdict::lost};
  if (first == "wrong") return wrong(words, claim, node);
  if (first == "other") return held_in_other_mode(words, claim, node);
  return Answer::failed({Errc::refused,
                         "the server's answer makes no sense: is its schema another version's?",
                         {.resource = {}, .node = node, .maybe_held = true}});
}

}  // namespace

Answer to_answer(const Outcome& outcome, const Claim& claim, const std::string& node) {
  if (outcome.failure) return Answer::failed(*outcome.failure);
  if (outcome.refusal) return Answer::failed(to_error(*outcome.refusal, node, names_of(claim)));
  // There is no schema, so nothing is held.
  if (PQntuples(outcome.result.get()) == 0) return {.verdict = Verdict::lost};
  return answer_of(words_of(outcome), claim, node);
}

Waited to_waited(const Outcome& outcome, const Claim& claim, const std::string& node) {
  if (!outcome.result) return {};
  auto words = words_of(outcome);
  if (words.empty()) return {};
  const auto time = bounded<microseconds>(number(next_word(words)));
  return {.time = time, .answer = answer_of(words, claim, node)};
}

Snapshot to_snapshot(const Outcome& outcome, const std::string& prefix, const std::string& node) {
  Snapshot snapshot;
  if (!outcome.result) {
    snapshot.why = outcome.refusal ? to_error(*outcome.refusal, node) : *outcome.failure;
    return snapshot;
  }
  snapshot.made = outcome.made;
  snapshot.unmakeable = outcome.unmakeable;
  const auto& rows = *outcome.result;
  for (int row = 0; row < PQntuples(&rows); ++row) {
    int column = 0;
    const auto next = [&] { return text_at(rows, row, column++); };
    auto name = next();
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    if (snapshot.resources.empty() || snapshot.resources.back().resource != name)
      snapshot.resources.push_back({.resource = std::string(name)});
    auto& state = snapshot.resources.back();
    const bool holds = next() == "0";
    Entry entry;
    entry.owner = owner_of(next());
    entry.mode = mode_of(next());
    entry.slots = number<std::uint32_t>(next());
    state.capacity = number<std::uint32_t>(next());
    entry.ancestor = next() == "t";
    entry.priority = number<std::int32_t>(next());
    entry.fence = Fence{number<std::uint64_t>(next())};
    entry.age = std::max(Duration::zero(), bounded<microseconds>(number(next())));
    entry.remaining = std::max(Duration::zero(), bounded<microseconds>(number(next())));
    entry.who.identity = next();
    read_label_and_names(next(), entry.who);
    entry.who.host = next();
    entry.who.pid = number(next());
    entry.who.tied = next() == "t";
    (holds ? state.holders : state.waiters).push_back(std::move(entry));
  }
  return snapshot;
}

}  // namespace interlock::postgres
