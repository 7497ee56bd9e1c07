#include "backends/redis/link_machine.hpp"

#include <algorithm>

namespace interlock::redis {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::seconds(1);

}  // namespace

LinkMachine::LinkMachine(Plan plan, std::uint32_t seed)
    : plan_(std::move(plan)), secrets_{plan_.access.password}, random_(seed) {}

bool LinkMachine::wants_connection(bool keep_open) const noexcept {
  const bool known = !plan_.endpoint.host.empty() || !plan_.endpoint.socket.empty();
  return known && (keep_open || !pending_.empty());
}

void LinkMachine::advance(TimePoint now, bool keep_open, Steps& steps) {
  if (const auto error = timeout(now)) return drop(*error, now, steps);
  expire(now, steps);
  if (state_ == State::down && now >= retry_at_ && wants_connection(keep_open)) begin(now, steps);
  if (state_ == State::open) send(now, steps);
}

std::optional<Error> LinkMachine::timeout(TimePoint now) const {
  const bool begins = state_ == State::connecting || state_ == State::greeting;
  if (begins && now >= connect_until_) {
    return Error(Errc::unreachable, state_ == State::connecting && plan_.access.tls
                                        ? "no connection within its time; does this port speak TLS?"
                                        : "no connection within its time");
  }
  if (sent_ > 0 && now >= *pending_.front().sent + plan_.access.call_timeout)
    return Error(Errc::unreachable, "the server does not answer");
  return std::nullopt;
}

// Only what was not sent can be given up one by one.
void LinkMachine::expire(TimePoint now, Steps& steps) {
  for (auto it = pending_.begin() + static_cast<std::ptrdiff_t>(sent_); it != pending_.end();) {
    if (it->request.deadline > now) {
      ++it;
      continue;
    }
    if (!steps.why) {
      steps.why.emplace(Errc::unreachable,
                        "no connection in time" + (problem_.empty() ? "" : ": " + problem_));
    }
    steps.over.push_back(std::move(*it));
    it = pending_.erase(it);
  }
}

void LinkMachine::begin(TimePoint now, Steps& steps) {
  state_ = State::connecting;
  ++connection_;
  answered_ = 0;
  stamp_.clear();
  end_.clear();
  connect_until_ = now + plan_.access.connect_timeout;
  steps.open = true;
}

void LinkMachine::opened(Steps& steps) {
  state_ = State::greeting;
  for (const auto& greeting : plan_.greetings) steps.bytes += greeting.bytes;
  steps.bytes += end_last_;
}

void LinkMachine::send(TimePoint now, Steps& steps) {
  for (; sent_ < pending_.size(); ++sent_) {
    auto& [request, sent] = pending_[sent_];
    if (request.stamped) put_stamp(request.bytes);
    steps.bytes += request.bytes;
    request.bytes.clear();
    sent = now;
  }
}

void LinkMachine::put_stamp(std::string& bytes) const {
  constexpr std::size_t kLineEnd = 2;
  if (bytes.size() < stamp_.size() + kLineEnd) return;
  std::copy(stamp_.begin(), stamp_.end(),
            bytes.end() - static_cast<std::ptrdiff_t>(stamp_.size() + kLineEnd));
}

void LinkMachine::heard(const redisReply& reply, TimePoint now, Steps& steps) {
  if (state_ == State::greeting) {
    if (const auto error = take_greeting(reply)) return drop(*error, now, steps);
    steps.greeted = state_ == State::open;
  } else if (sent_ > 0) {
    answer(steps);
  } else if (plan_.messages) {
    steps.message = true;
  } else {
    drop(Error(Errc::unreachable, "the server said something unasked"), now, steps);
  }
}

void LinkMachine::answer(Steps& steps) {
  if (--pending_.front().request.replies > 0) return;
  steps.answered = std::move(pending_.front().request);
  pending_.pop_front();
  --sent_;
}

std::optional<Error> LinkMachine::take_greeting(const redisReply& reply) {
  if (answered_ < plan_.greetings.size()) {
    if (auto error = check(plan_.greetings[answered_++], reply)) return error;
  } else {
    if (auto error = check_passing(reply)) return error;
    end_last_.clear();
  }
  if (answered_ < plan_.greetings.size() || !end_last_.empty()) return std::nullopt;
  state_ = State::open;
  problem_.clear();
  pause_ = {};
  return std::nullopt;
}

std::optional<Error> LinkMachine::check(const Greeting& greeting, const redisReply& reply) {
  // Without a password, what comes next is the least of the problems: such a server takes no long
  // commands and hangs up.
  if (is_error(reply) && (greeting.must || error_code(text_of(reply)) == "NOAUTH"))
    return to_error(text_of(reply), plan_.name);
  if (greeting.check) {
    if (auto error = greeting.check(reply)) return error;
  }
  if (greeting.stamp) stamp_ = greeting.stamp(reply);
  if (!greeting.end) return std::nullopt;
  if (auto error = check_passing(reply)) return error;
  end_ = greeting.end(reply);
  return std::nullopt;
}

// A server that can't do it now is asked again; one that never will goes without.
std::optional<Error> LinkMachine::check_passing(const redisReply& reply) const {
  if (!is_error(reply)) return std::nullopt;
  auto error = to_error(text_of(reply), plan_.name);
  if (!error.retryable()) return std::nullopt;
  return error;
}

void LinkMachine::failed(const Error& error, TimePoint now, Steps& steps) {
  if (state_ != State::down) drop(error, now, steps);
}

void LinkMachine::redirect(Endpoint endpoint, TimePoint now, Steps& steps) {
  if (endpoint == plan_.endpoint) return;
  plan_.endpoint = std::move(endpoint);
  failed(Error(Errc::unreachable, "the server is not the one to ask any more"), now, steps);
  retry_at_ = now;
  pause_ = {};
}

void LinkMachine::reconnect(TimePoint now, Steps& steps) {
  failed(Error(Errc::unreachable, "the connection begins anew"), now, steps);
}

void LinkMachine::refuse(const Error& why, Steps& steps) {
  if (state_ != State::down) return;
  steps.why.emplace(why);
  steps.over.swap(pending_);
}

std::deque<LinkMachine::Pending> LinkMachine::abandon() {
  std::deque<Pending> all;
  all.swap(pending_);
  sent_ = 0;
  return all;
}

// Memory may be at its end. So first comes what takes some; then all requests are over at once, lest a
// reply of the next connection is taken for one of this. What had expired and is not told yet waits again.
void LinkMachine::drop(const Error& error, TimePoint now, Steps& steps) {
  const auto why = secrets_.hide(error);  // also in names of hosts that a server gave
  problem_ = why.message();
  steps.why.emplace(why);
  state_ = State::down;
  if (sent_ > 0) end_last_ = std::move(end_);
  sent_ = 0;
  answered_ = 0;
  steps.over.swap(pending_);
  steps.close = true;
  steps.open = false;
  steps.bytes.clear();
  // Each of us at another time, so that a server that comes back is not overrun.
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  const auto half = pause_ / 2;
  retry_at_ = now + half + Duration(static_cast<Duration::rep>(random_()) % (half.count() + 1));
}

TimePoint LinkMachine::next(bool keep_open) const noexcept {
  auto next = TimePoint::max();
  if (state_ == State::down && wants_connection(keep_open)) next = retry_at_;
  if (state_ == State::connecting || state_ == State::greeting) next = connect_until_;
  if (sent_ > 0) next = std::min(next, *pending_.front().sent + plan_.access.call_timeout);
  for (auto i = sent_; i < pending_.size(); ++i)
    next = std::min(next, pending_[i].request.deadline);
  return next;
}

}  // namespace interlock::redis
