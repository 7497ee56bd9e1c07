// Every form of acquiring, by every way to call it.
#include <future>

#include "detached.hpp"
#include "hand.hpp"
#include "interlock/multi_lock.hpp"
#include "interlock/mutex.hpp"
#include "interlock/rw_lock.hpp"
#include "interlock/semaphore.hpp"
#include "no_memory.hpp"
#include "observe/words.hpp"

namespace torture {

using interlock::Attempt;
using interlock::Errc;
using interlock::Lease;
using interlock::Mode;

namespace {

// Through the front that a user would take.
interlock::Acquirer front_for(const Worker& worker, const Wish& wish) {
  const auto& first = wish.parts.front();
  if (wish.parts.size() > 1) return interlock::MultiLock(worker.client, wish.parts, wish.options);
  switch (first.mode) {
    case Mode::shared:
      return interlock::RwLock(worker.client, first.resource, wish.options).reader();
    case Mode::slots:
      return interlock::Semaphore(worker.client, first.resource, first.capacity, wish.options,
                                  first.slots);
    default:
      return {worker.client, wish.parts, wish.options};  // a Mutex is no more than this
  }
}

interlock::Wait wait_for(const Wish& wish, std::stop_token stop) {
  if (wish.form == "once") return interlock::Wait::once();
  if (wish.form == "bounded") return interlock::Wait::for_(*wish.limit, std::move(stop));
  if (wish.form == "tries")
    return interlock::Wait::times(interlock::Retry::every(std::chrono::milliseconds(20), 5),
                                  std::move(stop));
  return interlock::Wait::forever(std::move(stop));
}

std::string answer_of(interlock::Outcome outcome) {
  switch (outcome) {
    case interlock::Outcome::granted:
      return "granted";
    case interlock::Outcome::busy:
      return "busy";
    case interlock::Outcome::timed_out:
      return "timed_out";
    case interlock::Outcome::exhausted:
      return "exhausted";
    case interlock::Outcome::cancelled:
      return "cancelled";
    case interlock::Outcome::failed:
      return "failed";
  }
  return "?";
}

interlock::Outcome outcome_of(Errc code) {
  switch (code) {
    case Errc::busy:
      return interlock::Outcome::busy;
    case Errc::timed_out:
      return interlock::Outcome::timed_out;
    case Errc::exhausted:
      return interlock::Outcome::exhausted;
    case Errc::cancelled:
      return interlock::Outcome::cancelled;
    default:
      return interlock::Outcome::failed;
  }
}

interlock::testing_support::Detached await(interlock::Acquirer lock, interlock::Wait wait,
                                           interlock::Callback then) {
  then(co_await lock.async_try_acquire(std::move(wait)));
}

}  // namespace

std::string Hand::ask(const Wish& wish) {
  auto op = worker_.next_op();
  auto parts = Json::array();
  for (const auto& part : wish.parts) {
    parts.push_back({{"r", part.resource},
                     {"m", to_string(part.mode)},
                     {"n", part.slots},
                     {"c", part.capacity}});
  }
  worker_.log.add("ask", {{"op", op},
                          {"hand", number_},
                          {"verb", "acquire"},
                          {"via", wish.via},
                          {"parts", parts},
                          {"form", wish.form},
                          {"limit", wish.limit ? Json(wish.limit->count()) : Json()},
                          {"ttl", wish.options.ttl.count()},
                          {"priority", wish.options.priority},
                          {"identity", wish.options.identity},
                          {"hierarchy", wish.options.hierarchy},
                          {"renew", wish.options.renew}});
  return op;
}

void Hand::told(const std::string& op, const std::string& answer) const {
  worker_.log.add("told", {{"op", op}, {"answer", answer}});
}

void Hand::told(const std::string& op, const interlock::Error& error) const {
  worker_.log.add("told", {{"op", op},
                           {"answer", answer_of(outcome_of(error.errc()))},
                           {"errc", interlock::observe::word(error.errc())},
                           {"text", error.what()},
                           {"maybe_held", error.maybe_held()}});
}

void Hand::told(const std::string& op, Attempt& attempt) const {
  if (attempt) return told(op, "granted");
  const auto& error = attempt.error();
  // The outcome and its error have to agree.
  auto answer = answer_of(attempt.outcome());
  if (answer != answer_of(outcome_of(error.errc())))
    answer += " with " + answer_of(outcome_of(error.errc()));
  worker_.log.add("told", {{"op", op},
                           {"answer", answer},
                           {"errc", interlock::observe::word(error.errc())},
                           {"text", error.what()},
                           {"maybe_held", error.maybe_held()},
                           {"waited", attempt.waited().count()}});
}

std::optional<Lease> Hand::acquire_by(const std::string& via, const interlock::Acquirer& lock,
                                      const interlock::Wait& wait, const std::string& op) {
  const auto result = std::make_shared<std::promise<Attempt>>();
  // A second call would be a second line.
  const interlock::Callback take = [this, op, result](Attempt attempt) {
    const Exempt me;
    told(op, attempt);
    result->set_value(std::move(attempt));
  };
  if (via == "callback") {
    lock.acquire(wait, take);
  } else {
    await(lock, wait, take);
  }
  auto attempt = result->get_future().get();
  if (!attempt) return std::nullopt;
  return std::move(attempt).value();
}

std::optional<Hand::Granted> Hand::acquire(const Wish& wish) {
  const auto lock = front_for(worker_, wish);
  std::stop_source source;
  const auto stop = source.get_token();
  const auto asked = now();
  const auto op = ask(wish);
  // A worker that ends cancels all that waits.
  if (wish.form != "once") {
    worker_.watch.cancel(op, source, wish.cancel_after.value_or(std::chrono::hours(1)));
  }
  std::optional<Lease> lease;
  try {
    if (wish.via != "call") {
      lease = acquire_by(wish.via, lock, wait_for(wish, stop), op);
    } else if (wish.form == "wait") {
      lease = lock.acquire(stop);
      told(op, "granted");
    } else {
      auto attempt = wish.form == "once" ? lock.try_acquire()
                     : wish.form == "bounded"
                         ? lock.try_acquire_for(*wish.limit, stop)
                         : lock.try_acquire_times(*wait_for(wish, stop).tries, stop);
      told(op, attempt);
      if (attempt) lease = std::move(attempt).value();
    }
  } catch (const interlock::Error& error) {
    told(op, error);
  }
  worker_.watch.forget(op);
  if (!lease) return std::nullopt;
  return Granted{.op = op, .asked = asked, .lease = std::move(*lease)};
}

void Hand::lock_and_unlock(const Wish& wish) {
  interlock::Mutex mutex(worker_.client, wish.parts.front().resource, wish.options);
  const auto asked = now();
  const auto op = ask(wish);
  try {
    const bool in = wish.form == "once" ? mutex.try_lock() : mutex.try_lock_for(*wish.limit);
    if (!in) return told(op, wish.form == "once" ? "busy" : "timed_out");
    told(op, "granted");
  } catch (const interlock::Error& error) {
    return told(op, error);
  }
  // There is no lease to look at, so no more is believed than that it was held at this moment.
  worker_.log.add("holds", {{"lease", op},
                            {"op", op},
                            {"owner", ""},
                            {"identity", wish.options.identity},
                            {"r", wish.parts.front().resource},
                            {"m", "exclusive"},
                            {"n", 1},
                            {"c", 0},
                            {"asked", asked},
                            {"adopted", false},
                            {"until", asked}});
  pause(std::chrono::milliseconds(5));
  worker_.log.add("leaves", {{"lease", op}, {"r", wish.parts.front().resource}});
  verb("unlock", op, [&] {
    mutex.unlock();
    return std::string("yes");
  });
}

}  // namespace torture
