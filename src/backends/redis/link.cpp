#include "backends/redis/link.hpp"

#include <poll.h>

#include <array>
#include <random>

#include "core/text.hpp"

namespace interlock::redis {

namespace {

constexpr int kReadsAtOnce = 4;
// What there was no memory for is tried again after this.
constexpr auto kAgain = std::chrono::milliseconds(10);

LinkMachine::Plan machine_plan(Link::Plan& plan) {
  return {.name = plan.name,
          .endpoint = plan.endpoint,
          .access = plan.access,
          .greetings = std::move(plan.greetings),
          .messages = static_cast<bool>(plan.on_push)};
}

struct Told {
  Done done;
  Outcome outcome;
  void operator()() { done(std::move(outcome)); }
};

/// Notes that a request is over. If memory is at its end, nothing has changed, but the outcome is lost.
void finish(Request& request, Outcome outcome, Finished& finished) {
  if (request.done) {
    Told told{.done = std::move(request.done), .outcome = std::move(outcome)};
    try {
      finished.list.emplace_back(std::move(told));
    } catch (...) {
      request.done = std::move(told.done);
      throw;
    }
  }
  if (request.urgent) ++finished.urgent;
}

}  // namespace

Link::Link(Plan plan)
    : plan_(std::move(plan)),
      secrets_{plan_.access.password},
      machine_(machine_plan(plan_), std::random_device{}()) {}

void Link::redirect(Endpoint endpoint, TimePoint now, Finished& finished) {
  machine_.redirect(std::move(endpoint), now, steps_);
  perform(finished);
}

void Link::reconnect(TimePoint now, Finished& finished) {
  machine_.reconnect(now, steps_);
  perform(finished);
}

void Link::refuse(const Error& why, Finished& finished) {
  perform(finished);
  machine_.refuse(why, steps_);
  perform(finished);
}

void Link::abandon(Finished& finished) {
  for (auto& each : machine_.abandon()) finish(each.request, {}, finished);
}

void Link::advance(TimePoint now, Finished& finished) {
  again_at_ = now + kAgain;
  if (broken_)
    fail(Error(Errc::unreachable, "there was no memory for what it said"), now, finished);
  try {
    perform(finished);  // what was left undone as there was no memory for it
    machine_.advance(now, keeps_open(), steps_);
    perform(finished);
    if (machine_.state() == State::connecting && socket_->connect()) {
      machine_.opened(steps_);
      perform(finished);
    }
    if (is_open()) write();
  } catch (const Error& error) {
    broken_ = true;
    fail(error, now, finished);
  } catch (const std::exception& error) {  // the system refuses something, memory mostly
    broken_ = true;
    fail(Error(Errc::unreachable, error.what()), now, finished);
  }
}

void Link::fail(const Error& error, TimePoint now, Finished& finished) {
  machine_.failed(error, now, steps_);
  broken_ = false;
  perform(finished);
}

void Link::perform(Finished& finished) {
  if (steps_.close) close(finished);
  if (steps_.answered) answered({}, finished);
  for (; !steps_.over.empty(); steps_.over.pop_front()) {
    auto& over = steps_.over.front();
    finish(over.request, {.reply = {}, .failure = machine_.failure_of(over, *steps_.why)},
           finished);
  }
  steps_.why.reset();
  if (steps_.open) open();
  if (!steps_.bytes.empty()) {
    out_ += steps_.bytes;
    steps_.bytes.clear();
  }
  if (std::exchange(steps_.greeted, false) && plan_.on_open)
    finished.list.emplace_back(plan_.on_open);
}

void Link::close(Finished& finished) {
  socket_.reset();
  reader_.reset();
  out_.clear();
  out_done_ = 0;
  if (plan_.on_close)
    finished.list.emplace_back([tell = plan_.on_close, why = *steps_.why] { tell(why); });
  steps_.close = false;
}

void Link::open() {
  reader_.emplace();
  socket_.emplace(machine_.endpoint(), plan_.access);
  steps_.open = false;
}

void Link::write() {
  while (out_done_ < out_.size()) {
    const auto put = socket_->write(out_.data() + out_done_, out_.size() - out_done_);
    if (put == 0) return;
    out_done_ += put;
  }
  out_.clear();
  out_done_ = 0;
}

void Link::ready(TimePoint now, Finished& finished, bool soon) {
  if (!socket_) return;
  try {
    if (is_open() && !broken_) receive(now, finished, soon);
  } catch (const Error& error) {
    broken_ = true;
    // A port for TLS hangs up on whoever just begins to talk.
    const bool talked = machine_.acquainted() || plan_.access.tls || !error.retryable();
    fail(talked ? error
                : Error(error.errc(), error.message() + "; does this port want TLS (rediss:)?"),
         now, finished);
  } catch (const std::exception& error) {
    broken_ = true;
    fail(Error(Errc::unreachable, error.what()), now, finished);
  }
  advance(now, finished);
}

// A server that never stops sending must not keep the loop from its other connections and deadlines.
void Link::receive(TimePoint now, Finished& finished, bool soon) {
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  int reads = 0;
  for (std::size_t got = buffer.size();
       (got == buffer.size() && reads < kReadsAtOnce) || socket_->has_more(); ++reads) {
    got = soon ? socket_->read_soon(buffer.data(), buffer.size())
               : socket_->read(buffer.data(), buffer.size());
    soon = false;
    if (got == 0) return;
    reader_->feed({buffer.data(), got});
    while (auto reply = reader_->next()) {
      take(std::move(*reply), now, finished);
      if (!socket_) return;
    }
  }
}

void Link::take(Response reply, TimePoint now, Finished& finished) {
  if (is_error(*reply)) hide_in_error(*reply, secrets_);
  machine_.heard(*reply, now, steps_);
  if (steps_.answered) return answered(std::move(reply), finished);
  if (std::exchange(steps_.message, false))
    finished.list.emplace_back([tell = plan_.on_push, reply = std::move(reply)] { tell(*reply); });
  perform(finished);
}

// Without a reply: there was no memory to tell it.
void Link::answered(Response reply, Finished& finished) {
  Outcome outcome{.reply = std::move(reply), .failure = {}, .connection = machine_.connection()};
  if (!outcome.reply) {
    outcome.failure.emplace(Errc::unreachable, "no memory for the server's answer",
                            Error::Where{.resource = {}, .node = plan_.name, .maybe_held = true});
  } else if (plan_.on_error && is_error(*outcome.reply)) {
    finished.list.emplace_back(
        [tell = plan_.on_error, text = std::string(text_of(*outcome.reply))] { tell(text); });
  }
  finish(*steps_.answered, std::move(outcome), finished);
  steps_.answered.reset();
}

short Link::events() const noexcept {
  short events = socket_->wants();
  if (is_open()) events |= POLLIN;
  if (is_open() && out_done_ < out_.size()) events |= POLLOUT;
  return events;
}

}  // namespace interlock::redis
