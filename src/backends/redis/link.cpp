#include "backends/redis/link.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "core/text.hpp"

namespace interlock::redis {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr int kReadsAtOnce = 4;

}  // namespace

void Link::redirect(Endpoint endpoint, TimePoint now, Finished& finished) {
  if (endpoint == plan_.endpoint) return;
  plan_.endpoint = std::move(endpoint);
  if (socket_)
    drop(Error(Errc::unreachable, "the server is not the one to ask any more"), now, finished);
  retry_at_ = now;
  pause_ = {};
}

void Link::reconnect(TimePoint now, Finished& finished) {
  if (socket_) drop(Error(Errc::unreachable, "the connection begins anew"), now, finished);
}

void Link::abandon(Finished& finished) {
  for (; !sent_.empty(); sent_.pop_front()) finish(sent_.front().request, {}, finished);
  for (; !waiting_.empty(); waiting_.pop_front()) finish(waiting_.front(), {}, finished);
}

void Link::refuse(const Error& why, Finished& finished) {
  if (socket_) return;
  for (; !waiting_.empty(); waiting_.pop_front())
    finish(waiting_.front(), failure(why, false), finished);
  plan_next();
}

void Link::open(TimePoint now) {
  opened_ = greeted_ = false;
  ++connection_;
  stamp_.clear();
  end_.clear();
  opening_until_ = now + plan_.access.connect_timeout;
  reader_.emplace();
  out_.clear();
  out_done_ = 0;
  socket_.emplace(plan_.endpoint, plan_.access);
}

void Link::greet() {
  answered_ = 0;
  for (const auto& greeting : plan_.greetings) out_ += greeting.bytes;
  out_ += end_last_;
}

void Link::advance(TimePoint now, Finished& finished) {
  // Only what was not sent can be given up one by one.
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    const auto why = problem_.empty() ? "" : ": " + problem_;
    finish(*it, failure(Error(Errc::unreachable, "no connection in time" + why), false), finished);
    it = waiting_.erase(it);
  }
  try {
    if (!socket_ && now >= retry_at_ && wants_connection()) open(now);
    if (socket_) {
      if (!opened_ && socket_->connect()) {
        opened_ = true;
        greet();
      }
      if (opened_) send(now);
      if (!greeted_ && now >= opening_until_)
        throw Error(Errc::unreachable,
                    !opened_ && plan_.access.tls
                        ? "no connection within its time; does this port speak TLS?"
                        : "no connection within its time");
      if (!sent_.empty() && now >= sent_.front().at + plan_.access.call_timeout)
        throw Error(Errc::unreachable, "the server does not answer");
    }
  } catch (const Error& error) {
    drop(error, now, finished);
  } catch (const std::exception& error) {  // the system refuses something, memory mostly
    drop(Error(Errc::unreachable, error.what()), now, finished);
  }
  plan_next();
}

void Link::send(TimePoint now) {
  if (greeted_) {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      if (waiting_.front().stamped) put_stamp(waiting_.front().bytes);
      out_ += waiting_.front().bytes;
      waiting_.front().bytes.clear();
      sent_.push_back({.request = std::move(waiting_.front()), .at = now});
    }
  }
  while (out_done_ < out_.size()) {
    const auto put = socket_->write(out_.data() + out_done_, out_.size() - out_done_);
    if (put == 0) return;
    out_done_ += put;
  }
  out_.clear();
  out_done_ = 0;
}

void Link::put_stamp(std::string& bytes) const {
  constexpr std::size_t kLineEnd = 2;
  if (bytes.size() < stamp_.size() + kLineEnd) return;
  std::copy(stamp_.begin(), stamp_.end(),
            bytes.end() - static_cast<std::ptrdiff_t>(stamp_.size() + kLineEnd));
}

void Link::ready(TimePoint now, Finished& finished, bool soon) {
  if (!socket_) return;
  try {
    if (opened_) receive(finished, soon);
  } catch (const Error& error) {
    // A port for TLS hangs up on whoever just begins to talk.
    const bool talked = greeted_ || answered_ > 0 || plan_.access.tls || !error.retryable();
    drop(talked ? error
                : Error(error.errc(), error.message() + "; does this port want TLS (rediss:)?"),
         now, finished);
  } catch (const std::exception& error) {
    drop(Error(Errc::unreachable, error.what()), now, finished);
  }
  advance(now, finished);
}

// A server that never stops sending must not keep the loop from its other connections and deadlines.
void Link::receive(Finished& finished, bool soon) {
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  int reads = 0;
  for (std::size_t got = buffer.size();
       (got == buffer.size() && reads < kReadsAtOnce) || socket_->has_more(); ++reads) {
    got = soon ? socket_->read_soon(buffer.data(), buffer.size())
               : socket_->read(buffer.data(), buffer.size());
    soon = false;
    if (got == 0) return;
    reader_->feed({buffer.data(), got});
    while (auto reply = reader_->next()) take(std::move(*reply), finished);
  }
}

void Link::take(Response reply, Finished& finished) {
  if (is_error(*reply)) hide_in_error(*reply, secrets_);
  if (!greeted_) return take_greeting(*reply, finished);
  if (sent_.empty()) {
    if (!plan_.on_push) throw Error(Errc::unreachable, "the server said something unasked");
    finished.list.emplace_back([tell = plan_.on_push, reply = std::move(reply)] { tell(*reply); });
    return;
  }
  if (--sent_.front().request.replies > 0) return;
  if (plan_.on_error && is_error(*reply)) {
    finished.list.emplace_back(
        [tell = plan_.on_error, text = std::string(text_of(*reply))] { tell(text); });
  }
  finish(sent_.front().request,
         {.reply = std::move(reply), .failure = {}, .connection = connection_}, finished);
  sent_.pop_front();
}

void Link::take_greeting(const redisReply& reply, Finished& finished) {
  if (answered_ < plan_.greetings.size()) {
    check_greeting(plan_.greetings[answered_++], reply);
  } else {
    check_passing(reply);
    end_last_.clear();
  }
  if (answered_ < plan_.greetings.size() || !end_last_.empty()) return;
  greeted_ = true;
  problem_.clear();
  pause_ = {};
  if (plan_.on_open) finished.list.emplace_back(plan_.on_open);
}

void Link::check_greeting(const Greeting& greeting, const redisReply& reply) {
  // Without a password, what comes next is the least of the problems: such a server takes no long
  // commands and hangs up.
  if (is_error(reply) && (greeting.must || error_code(text_of(reply)) == "NOAUTH"))
    throw to_error(text_of(reply), plan_.name);
  if (greeting.check) {
    if (const auto error = greeting.check(reply)) throw Error(*error);
  }
  if (greeting.stamp) stamp_ = greeting.stamp(reply);
  if (!greeting.end) return;
  check_passing(reply);
  end_ = greeting.end(reply);
}

// A server that can't do it now is asked again; one that never will goes without.
void Link::check_passing(const redisReply& reply) const {
  if (!is_error(reply)) return;
  const auto error = to_error(text_of(reply), plan_.name);
  if (error.retryable()) throw Error(error);
}

// Sent: the server may have done it all the same.
Outcome Link::failure(const Error& why, bool sent) const {
  return {.reply = {},
          .failure = Error(why.errc(), why.message(),
                           {.resource = {}, .node = plan_.name, .maybe_held = sent})};
}

void Link::drop(const Error& error, TimePoint now, Finished& finished) {
  const auto why = secrets_.hide(error);  // also in names of hosts that a server gave
  socket_.reset();
  reader_.reset();
  problem_ = why.message();
  if (!sent_.empty()) end_last_ = end_;
  if (plan_.on_close) finished.list.emplace_back([tell = plan_.on_close, why] { tell(why); });
  greeted_ = opened_ = false;
  // Each of us at another time, so that a server that comes back is not overrun.
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  const auto half = pause_.count() / 2;
  retry_at_ = now + Duration(half + std::uniform_int_distribution<Duration::rep>(0, half)(random_));
  for (; !sent_.empty(); sent_.pop_front())
    finish(sent_.front().request, failure(why, true), finished);
  for (; !waiting_.empty(); waiting_.pop_front()) {
    finish(waiting_.front(), failure(why, false), finished);
  }
  plan_next();
}

short Link::events() const noexcept {
  short events = socket_->wants();
  if (opened_) events |= POLLIN;
  if (opened_ && out_done_ < out_.size()) events |= POLLOUT;
  return events;
}

void Link::plan_next() {
  next_ = TimePoint::max();
  if (!socket_ && wants_connection()) next_ = retry_at_;
  if (socket_ && !greeted_) next_ = std::min(next_, opening_until_);
  if (!sent_.empty()) next_ = std::min(next_, sent_.front().at + plan_.access.call_timeout);
  for (const auto& request : waiting_) next_ = std::min(next_, request.deadline);
}

}  // namespace interlock::redis
