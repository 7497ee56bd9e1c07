#include "recipes/flights.hpp"

#include <algorithm>
#include <utility>

#include "core/process.hpp"
#include "core/text.hpp"

namespace interlock::flights {

namespace {

// Condition variables don't count the time that the machine is suspended: look at the clock again.
constexpr Duration kLongestSleep = std::chrono::seconds(1);

// A refresh that failed is not tried again sooner, however often its value is asked for.
constexpr Duration kRest = std::chrono::seconds(1);

// Longer than anybody waits, and short enough to be added to the time.
constexpr Duration kForever = std::chrono::hours(24 * 365 * 100);

}  // namespace

Flights::Flights(Client client, Cache cache, Generate generate, SingleFlightOptions options)
    : workshop_(std::move(client), std::move(cache), std::move(generate), std::move(options)),
      epoch_(core::fork_epoch()) {}

Flights::~Flights() {
  std::unique_lock lock(mutex_);
  open_.clear();
  const auto flying = flying_;
  lock.unlock();
  for (const auto& flight : flying) {
    flight->nobody_waits.request_stop();
    flight->stop.request_stop();
  }
  lock.lock();
  all_landed_.wait(lock, [this] { return flying_.empty(); });
  lock.unlock();
  join_finished();
}

std::optional<std::string> Flights::get(const std::string& key, const Wait& wait) {
  if (auto cached = workshop_.look(key)) {
    if (workshop_.due(*cached)) refresh(key, *cached);
    return std::move(*cached).value();
  }
  return join(key, std::nullopt, wait);
}

std::optional<std::string> Flights::replace(const std::string& key, const Wait& wait) {
  auto cached = workshop_.look(key);
  return join(key, cached ? std::optional(cached->bytes()) : std::nullopt, wait);
}

std::optional<std::string> Flights::join(const std::string& key,
                                         std::optional<std::string> instead_of, const Wait& wait) {
  check_not_forked();
  const auto until = BootClock::now() + std::min(wait.limit.value_or(kForever), kForever);
  if (wait.stop.stop_requested() || until <= BootClock::now()) return std::nullopt;
  join_finished();

  std::unique_lock lock(mutex_);
  check_deadlock(key);
  auto& flight_of_key = open_[key];
  const bool first = !flight_of_key;
  if (first) flight_of_key = std::make_shared<Flight>(key);
  const auto flight = flight_of_key;
  // A run that is under way will do; a value that is only looked up has to be another one.
  if (instead_of) flight->instead_of = std::move(instead_of);
  if (first) start(flight);

  ++flight->waiters;
  const auto mine = generators_.find(std::this_thread::get_id());
  if (mine != generators_.end()) mine->second->waits_for = flight.get();
  while (!flight->over && !wait.stop.stop_requested() && BootClock::now() < until) {
    const auto rest = std::min<Duration>(until - BootClock::now(), kLongestSleep);
    flight->landed.wait_for(lock, wait.stop, rest, [&] { return flight->over; });
  }
  if (mine != generators_.end()) mine->second->waits_for = nullptr;
  --flight->waiters;
  if (!flight->over) {
    leave(flight, lock);
    return std::nullopt;
  }
  lock.unlock();
  if (flight->error) std::rethrow_exception(flight->error);
  return flight->value;
}

bool Flights::forked() const noexcept { return epoch_ != core::fork_epoch(); }

void Flights::check_not_forked() const {
  if (!forked()) return;
  throw Error(Errc::forked, "SingleFlight: made before a fork; make another one in the child");
}

int Flights::waiting(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = open_.find(key);
  return it == open_.end() ? 0 : it->second->waiters;
}

void Flights::start(const Shared& flight) {
  try {
    flying_.insert(flight);
    flight->thread = std::thread([this, flight] { fly(flight); });
  } catch (...) {
    flying_.erase(flight);
    open_.erase(flight->key);
    throw;
  }
}

// Who asks may be a generator, whose value others wait for, and so on: if the key is made by one of
// them, waiting for it never ends.
void Flights::check_deadlock(const std::string& wanted) const {
  const auto mine = generators_.find(std::this_thread::get_id());
  const auto its = open_.find(wanted);
  if (mine == generators_.end() || its == open_.end()) return;
  for (const Flight* flight = its->second.get(); flight != nullptr; flight = flight->waits_for) {
    if (flight != mine->second) continue;
    throw Error(Errc::deadlock,
                "the generator of '" + printable(flight->key, 200) + "' waits for '" +
                    printable(wanted, 200) +
                    "', which waits for it; a generator must not need its own value",
                {.resource = workshop_.lock_name(wanted), .node = {}, .maybe_held = false});
  }
}

void Flights::remove(const std::string& key, const Wait& wait) {
  check_not_forked();
  {
    const std::lock_guard lock(mutex_);
    check_deadlock(key);
  }
  workshop_.remove(key, wait);
}

void Flights::leave(const Shared& flight, std::unique_lock<std::mutex>& lock) {
  if (flight->waiters > 0 || flight->generating) return;
  withdraw(*flight);
  lock.unlock();
  flight->nobody_waits.request_stop();
}

void Flights::withdraw(Flight& flight) {
  const auto it = open_.find(flight.key);
  if (it != open_.end() && it->second.get() == &flight) open_.erase(it);
}

void Flights::refresh(const std::string& key, const Cached& old) noexcept {
  try {
    check_not_forked();
    join_finished();
    const std::lock_guard lock(mutex_);
    std::erase_if(resting_, [now = BootClock::now()](const auto& r) { return r.second <= now; });
    if (open_.contains(key) || resting_.contains(key) ||
        in_background_ >= workshop_.options().refreshes)
      return;
    const auto flight = std::make_shared<Flight>(key);
    flight->background = true;
    flight->instead_of = old.bytes();
    open_.emplace(key, flight);
    start(flight);
    ++in_background_;
  } catch (...) {
    workshop_.problem(key, std::current_exception());
  }
}

void Flights::join_finished() {
  std::vector<std::thread> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (auto& thread : finished) thread.join();
}

void Flights::fly(const Shared& flight) noexcept {
  std::optional<std::string> value;
  std::exception_ptr error;
  try {
    value = pursue(*flight);
  } catch (...) {
    error = std::current_exception();
  }
  if (error && flight->background) workshop_.problem(flight->key, error);

  const std::lock_guard lock(mutex_);
  withdraw(*flight);
  flight->value = std::move(value);
  flight->error = std::move(error);
  flight->over = true;
  flight->landed.notify_all();
  if (flight->background) {
    --in_background_;
    if (flight->error) resting_.insert_or_assign(flight->key, BootClock::now() + kRest);
  }
  finished_.push_back(std::move(flight->thread));
  flying_.erase(flight);
  if (flying_.empty()) all_landed_.notify_all();
}

std::optional<std::string> Flights::pursue(Flight& flight) {
  const auto lock = workshop_.lock(flight.key);
  const auto began = BootClock::now();
  const auto stop = flight.nobody_waits.get_token();
  for (bool waited = false;;) {
    Lease lease;
    if (auto attempt = lock.try_write_for(Duration::zero(), stop)) {
      lease = *std::move(attempt);
    } else if (stop.stop_requested()) {
      return std::nullopt;
    } else {
      // Somebody is at it. As readers, all who wait for that get in together.
      if (!may_queue(flight)) return std::nullopt;
      waited = true;
      lease = lock.read(stop);
    }
    if (auto cached = workshop_.look(flight.key); cached && will_do(flight, *cached)) {
      if (waited) workshop_.found(flight.key, BootClock::now() - began);
      return std::move(*cached).value();
    }
    if (waited) {
      workshop_.check_failure(flight.key, began);
      // Of those who found nothing, one goes on, and the others wait for it.
      const auto climbed = climb(lease, stop);
      if (climbed == Climb::stopped) return std::nullopt;
      if (climbed != Climb::up) continue;
    }
    if (!begin(flight)) return std::nullopt;
    return generate(flight, std::move(lease));
  }
}

std::optional<std::string> Flights::generate(Flight& flight, Lease lease) {
  const auto done = [this](const Flight*) {
    const std::lock_guard guard(mutex_);
    generators_.erase(std::this_thread::get_id());
  };
  const std::unique_ptr<Flight, decltype(done)> generator(&flight, done);
  return workshop_.make(flight.key, lease, flight.stop);
}

// A refresh has no need to: somebody else does it. Unless a caller came to wait for it.
bool Flights::may_queue(Flight& flight) {
  const std::lock_guard lock(mutex_);
  if (!flight.background || flight.waiters > 0) return true;
  withdraw(flight);
  return false;
}

bool Flights::will_do(Flight& flight, const Cached& cached) {
  const std::lock_guard lock(mutex_);
  if (flight.instead_of == cached.bytes()) return false;
  withdraw(flight);  // nobody joins who wants another one than this
  return true;
}

bool Flights::begin(Flight& flight) {
  const std::lock_guard lock(mutex_);
  if (flight.nobody_waits.stop_requested()) return false;
  flight.generating = true;
  generators_.emplace(std::this_thread::get_id(), &flight);
  return true;
}

}  // namespace interlock::flights
