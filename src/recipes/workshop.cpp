#include "recipes/workshop.hpp"

#include <cmath>
#include <utility>

#include "core/sha256.hpp"
#include "core/text.hpp"
#include "interlock/duration.hpp"

namespace interlock::flights {

namespace {

using namespace std::chrono_literals;

// What may be said of a failed run; a label has room for a little more.
constexpr std::size_t kLongestNote = 1000;

// How long one may take to notice that nobody waits for a climb any more.
constexpr Duration kStep = 1s;

// Random, above 0 and up to 1.
double draw() { return (static_cast<double>(Owner::random().low >> 11U) + 1) * 0x1p-53; }

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

void refuse(bool wrong, const std::string& rule) {
  if (wrong) throw Error(Errc::invalid, "SingleFlight: " + rule);
}

void check(const Cache& cache, const Generate& generate, const SingleFlightOptions& options) {
  refuse(!cache.get, "the cache needs a get function");
  refuse(!cache.put && !cache.put_fenced, "the cache needs a put function");
  refuse(!generate, "the generator is empty");
  refuse(options.fresh_for && *options.fresh_for < 1ms,
         "fresh_for has to be a millisecond or more");
  refuse(options.stale_for < 0s, "stale_for can't be negative");
  refuse(options.stale_for > 0s && !options.fresh_for, "stale_for says nothing without fresh_for");
  refuse(!(options.early >= 0) || std::isinf(options.early), "early has to be 0 or more");
  refuse(options.refreshes < 0, "refreshes can't be negative");
  refuse(options.tell_errors_for < 0s, "tell_errors_for can't be negative");
  refuse(options.tell_errors_for > 24h * 365, "tell_errors_for can't be more than a year");
  refuse(options.prefix.size() > 256, "the prefix has more than 256 bytes");
  if (!options.prefix.empty()) check_resource(options.prefix);
  check_ttl(options.ttl, options.prefix);
  check_text("the label", options.label);
}

}  // namespace

Workshop::Workshop(Client client, Cache cache, Generate generate, SingleFlightOptions options)
    : client_(std::move(client)),
      cache_(std::move(cache)),
      generate_(std::move(generate)),
      options_(std::move(options)),
      freshness_(options_) {
  check(cache_, generate_, options_);
  if (cache_.put_fenced && !client_.traits().fences) {
    throw Error(Errc::unsupported, "SingleFlight: this store has no fences for put_fenced; use put",
                {.resource = {}, .node = client_.traits().where, .maybe_held = false});
  }
}

std::optional<Cached> Workshop::look(const std::string& key) const {
  auto bytes = cache_.get(key);
  if (!bytes) return std::nullopt;
  Cached cached(*std::move(bytes));
  if (!freshness_.usable(cached)) return std::nullopt;
  return cached;
}

bool Workshop::due(const Cached& cached) const {
  return options_.refreshes > 0 && freshness_.due(cached, draw());
}

void Workshop::remove(const std::string& key, const Wait& wait) const {
  if (!cache_.remove) {
    throw Error(Errc::invalid, "the cache has no remove function; give it one",
                {.resource = lock_name(key), .node = {}, .maybe_held = false});
  }
  const auto writer = lock(key).writer();
  const auto lease = wait.limit ? writer.try_acquire_for(*wait.limit, wait.stop).value()
                                : writer.acquire(wait.stop);
  cache_.remove(key);
}

// Names after "#" are ours, so that no key can be mistaken for what stands for another one.
std::string Workshop::safe(const std::string& key) const {
  const bool plain = !key.empty() && key.size() <= 200 && key[0] != '#' && is_plain_utf8(key);
  return plain ? key : "#" + core::sha256_hex(key);
}

std::string Workshop::lock_name(const std::string& key) const {
  return options_.prefix + safe(key);
}

std::string Workshop::note_name(const std::string& key) const {
  return options_.prefix + "#failed:" + safe(key);
}

RwLock Workshop::lock(const std::string& key) const {
  Options options{.ttl = options_.ttl, .label = options_.label};
  options.hierarchy = false;
  return {client_, lock_name(key), options};
}

std::string Workshop::make(const std::string& key, Lease& lease, std::stop_source& stop) {
  const auto began = BootClock::now();
  const std::stop_callback lost(lease.lost(), [&stop] { stop.request_stop(); });
  std::string value;
  try {
    value = generate_(key, stop.get_token());
  } catch (...) {
    if (!stop.stop_requested()) tell(key, std::current_exception(), lease);
    throw;
  }
  // Whoever was told to stop may have given back half of it, and may have failed for no other reason.
  if (stop.stop_requested() && lease) return value;
  try {
    store(key, value, BootClock::now() - began, lease);
  } catch (...) {
    problem(key, std::current_exception());
  }
  return value;
}

void Workshop::store(const std::string& key, const std::string& value, Duration took,
                     const Lease& lease) {
  const auto bytes = freshness_.seal(value, took);
  if (lease)
    return cache_.put_fenced ? cache_.put_fenced(key, bytes, lease.fence())
                             : cache_.put(key, bytes);
  throw Error(Errc::lost,
              "lost while the generator ran (" + lease.lost_reason() +
                  "): its value was not stored, as another may be newer",
              {.resource = lease.resource(), .node = {}, .maybe_held = false});
}

void Workshop::tell(const std::string& key, const std::exception_ptr& error, const Lease& lease) {
  if (options_.tell_errors_for < 1ms || lease.state() != LeaseState::held) return;
  try {
    const auto seen = client_.inspect({.resources = {lease.resource()}});
    if (seen.resources.empty() || seen.resources.front().waiters.empty()) return;
    auto note = leave_note(key, printable(text_of(error), kLongestNote));
    if (client_.traits().detaches) {
      (void)note.detach();
      return;
    }
    const std::lock_guard lock(mutex_);
    std::erase_if(notes_, [](const Lease& old) { return !old; });
    notes_.push_back(std::move(note));
  } catch (...) {
    problem(key, std::current_exception());
  }
}

Lease Workshop::leave_note(const std::string& key, const std::string& text) const {
  Options options{.ttl = options_.tell_errors_for, .label = text};
  options.renew = false;
  options.hierarchy = false;
  options.process = 0;
  const Mutex note(client_, note_name(key), options);
  if (auto attempt = note.try_acquire()) return *std::move(attempt);
  // The one before it. Whoever did not read it yet reads this one: it is an error since it waits, too.
  const auto old = client_.inspect({.resources = {note.resource()}});
  for (const auto& state : old.resources) {
    for (const auto& holder : state.holders) client_.evict(state.resource, holder.owner);
  }
  return note.try_acquire().value();
}

void Workshop::check_failure(const std::string& key, TimePoint since) const {
  if (options_.tell_errors_for < 1ms) return;
  std::optional<std::string> note;
  try {
    note = note_since(key, since);
  } catch (...) {
    problem(key, std::current_exception());
  }
  if (!note) return;
  throw GenerationFailed("the generator of '" + printable(key, 200) +
                         "' failed in another process: " + *note);
}

std::optional<std::string> Workshop::note_since(const std::string& key, TimePoint since) const {
  // Counted before the store is asked: what is older by then was there before.
  const auto waited = BootClock::now() - since;
  for (const auto& state : client_.inspect({.resources = {note_name(key)}}).resources) {
    for (const auto& holder : state.holders) {
      if (holder.age <= waited) return holder.who.label;
    }
  }
  return std::nullopt;
}

void Workshop::problem(const std::string& key, std::exception_ptr what) const noexcept {
  if (!options_.on_problem) return;
  try {
    options_.on_problem(key, std::move(what));
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody left to tell
  }
}

Climb climb(Lease& lease, const std::stop_token& stop) {
  for (;;) {
    const auto began = BootClock::now();
    if (lease.try_upgrade_for(kStep)) return Climb::up;
    if (lease.state() != LeaseState::held) return Climb::lost;
    if (stop.stop_requested()) return Climb::stopped;
    // A refusal comes at once; else the other readers are not gone yet.
    if (BootClock::now() - began < kStep) return Climb::refused;
  }
}

}  // namespace interlock::flights
