#include "backends/postgres/link.hpp"

#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace interlock::postgres {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr int kWorthSleeping = 10;  // milliseconds

Error unreachable(const std::string& what) { return {Errc::unreachable, what}; }

void finish(Request& request, Outcome outcome, Finished& finished) {
  if (std::exchange(request.urgent, false)) ++finished.urgent;
  if (!request.done) return;
  finished.list.emplace_back(
      [done = std::exchange(request.done, {}), outcome = std::move(outcome)]() mutable {
        done(std::move(outcome));
      });
}

}  // namespace

void post(io::Loop& loop, const std::shared_ptr<Link>& link, Request request) {
  const bool urgent = request.urgent;
  loop.post([link, request = std::move(request)](
                TimePoint, Finished&) mutable { link->add(std::move(request)); },
            urgent);
}

void Link::reconnect(TimePoint now, Finished& finished) {
  if (connection_) drop(unreachable("the connection begins anew"), now, finished);
}

void Link::abandon(Finished& finished) {
  for (; !sent_.empty(); sent_.pop_front()) finish(sent_.front().request, {}, finished);
  for (; !waiting_.empty(); waiting_.pop_front()) finish(waiting_.front(), {}, finished);
}

void Link::open(TimePoint now) {
  opening_until_ = now + plan_.connect_timeout;
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : plan_.keywords) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  // A host that swallows packets takes all the time there is: the next attempt begins with another.
  std::string hosts;
  std::string ports;
  for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
    const auto& [host, port] = plan_.hosts[(attempts_ + i) % plan_.hosts.size()];
    hosts += (i == 0 ? "" : ",") + host;
    ports += (i == 0 ? "" : ",") + port;
  }
  ++attempts_;
  if (!plan_.hosts.empty()) {
    names.insert(names.end(), {"host", "port"});
    values.insert(values.end(), {hosts.c_str(), ports.c_str()});
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  connection_.reset(PQconnectStartParams(names.data(), values.data(), 0));
  if (!connection_) throw unreachable("no memory for a connection");
  note_password();
  PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);
  PQsetNoticeReceiver(
      connection_.get(), [](void*, const PGresult*) {}, nullptr);
  if (PQstatus(connection_.get()) == CONNECTION_BAD)
    throw Error(connect_error(connection_.get(), plan_.name, secrets_));
  state_ = State::connecting;
  polling_ = PGRES_POLLING_WRITING;
  greeted_ = 0;
  empty_ = false;
  bytes_ = 0;
  unsent_ = false;
  prepared_.clear();
  session_.clear();
}

template <class Read>
void Link::feed(Read read) {
  const auto bytes = relay_->receive();
  if (bytes == 0 && !relay_->over()) return;
  bytes_ += bytes;
  auto most = Statement{}.most_bytes;
  for (const auto& sent : sent_) most = std::max(most, sent.request.statement->most_bytes);
  if (bytes_ > most) {
    throw unreachable("the server's answer is longer than " +
                      std::to_string(most / Statement::kMebibyte) +
                      " MiB; is this a PostgreSQL server?");
  }
  while (read()) {
    // Without TLS, it reads in one go all that the relay hands over.
    int left = 0;
    const bool all = state_ != State::connecting && PQsslInUse(connection_.get()) == 0;
    if (all || ::ioctl(PQsocket(connection_.get()), FIONREAD, &left) != 0 || left == 0) return;
  }
}

// True if libpq waits for the server.
bool Link::poll_connecting() {
  polling_ = PQconnectPoll(connection_.get());
  note_password();
  const int socket = PQsocket(connection_.get());
  if (relay_ && !relay_->is_behind(socket)) relay_.reset();
  const auto status = PQstatus(connection_.get());
  const bool connected = status != CONNECTION_STARTED && status != CONNECTION_MADE &&
                         status != CONNECTION_NEEDED && status != CONNECTION_BAD;
  if (!relay_ && connected) relay_.emplace(socket);
  unsent_ = relay_ && !relay_->send();
  return polling_ == PGRES_POLLING_READING;
}

void Link::go_on_connecting(Finished& finished) {
  if (unsent_) unsent_ = !relay_->send();
  if (relay_ && polling_ == PGRES_POLLING_READING) {
    feed([this] { return poll_connecting(); });
  } else {
    (void)poll_connecting();
  }
  if (polling_ == PGRES_POLLING_FAILED)
    throw Error(connect_error(connection_.get(), plan_.name, secrets_));
  if (polling_ != PGRES_POLLING_OK) return;
  if (PQsetnonblocking(connection_.get(), 1) != 0) throw unreachable("no non-blocking connection");
  state_ = State::greeting;
  greet(nullptr, finished);
}

void Link::greet(const PGresult* answer, Finished& finished) {
  const bool makes_schema =
      std::any_of(waiting_.begin(), waiting_.end(),
                  [](const Request& request) { return request.statement->makes_schema; });
  const auto next = plan_.greet ? plan_.greet({.link = *this,
                                               .step = greeted_,
                                               .answer = answer,
                                               .process = PQbackendPID(connection_.get()),
                                               .makes_schema = makes_schema})
                                : std::string();
  if (!next.empty()) {
    ++greeted_;
    if (PQsendQuery(connection_.get(), next.c_str()) == 0) throw broken();
    return flush();
  }
  if (empty_) return answer_without_schema(finished);
  if (PQenterPipelineMode(connection_.get()) == 0) throw unreachable("no pipeline");
  state_ = State::open;
  pause_ = {};
  if (plan_.on_open) finished.list.emplace_back(plan_.on_open);
}

// The next request connects again, as somebody may have made the schema by then.
void Link::answer_without_schema(Finished& finished) {
  if (waiting_.empty()) throw unreachable("there is no schema interlock");
  for (; !waiting_.empty(); waiting_.pop_front()) {
    Outcome outcome{.made = false, .unmakeable = unmakeable_};
    outcome.result.reset(PQmakeEmptyPGresult(connection_.get(), PGRES_TUPLES_OK));
    if (!outcome.result) throw unreachable("no memory for an answer");
    finish(waiting_.front(), std::move(outcome), finished);
  }
  connection_.reset();
  relay_.reset();
  state_ = State::down;
}

void Link::take_greeting(Finished& finished) {
  while (state_ == State::greeting && PQisBusy(connection_.get()) == 0) {
    Result result(PQgetResult(connection_.get()));
    if (result) {
      // Of several statements in one, the one with rows counts, or the one that failed.
      if (!greeting_ || is_error(*result) || PQresultStatus(result.get()) == PGRES_TUPLES_OK)
        greeting_ = std::move(result);
      continue;
    }
    bytes_ = 0;
    const auto answer = std::move(greeting_);
    if (!answer) throw unreachable("the server does not answer");
    if (is_error(*answer)) throw Error(to_error(to_refusal(*answer, secrets_), plan_.name));
    greet(answer.get(), finished);
    if (state_ == State::greeting) return;  // its answer is still to come
  }
}

void Link::advance(TimePoint now, Finished& finished) {
  give_up_late(now, finished);
  try {
    if (!connection_ && now >= retry_at_ && wants_connection()) open(now);
    if (connection_) {
      if (state_ != State::open && now >= opening_until_)
        throw unreachable("no connection within its time");
      if (state_ == State::open) send(now);
      if (!sent_.empty() && now >= sent_.front().at + plan_.patience)
        throw unreachable("the server does not answer");
    }
  } catch (const Error& error) {
    drop(error, now, finished);
  } catch (const std::exception& error) {  // the system refuses something, memory mostly
    drop(Error(Errc::unreachable, error.what()), now, finished);
  }
  plan_next();
}

void Link::give_up_late(TimePoint now, Finished& finished) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    finish(*it, failure(unreachable("no connection in time"), false), finished);
    it = waiting_.erase(it);
  }
  // What was sent keeps its place, for the answer that may still come.
  for (auto& sent : sent_) {
    if (sent.request.deadline > now || !sent.request.done) continue;
    finish(sent.request, failure(unreachable("no answer in time"), true), finished);
  }
}

bool Link::put(const Request& request) {
  std::vector<const char*> values;
  values.reserve(session_.size() + request.parameters.size());
  for (const auto& parameter : session_) values.push_back(parameter.c_str());
  for (const auto& parameter : request.parameters) values.push_back(parameter.c_str());
  const auto count = static_cast<int>(values.size());
  auto* connection = connection_.get();
  const auto& statement = *request.statement;
  bool good = true;
  bool prepares = false;
  if (pooled_) {
    good = PQsendQueryParams(connection, statement.text.c_str(), count, nullptr, values.data(),
                             nullptr, nullptr, 0) != 0;
  } else {
    prepares = prepared_.insert(&statement).second;
    if (prepares) {
      good = PQsendPrepare(connection, statement.name.c_str(), statement.text.c_str(), 0,
                           nullptr) != 0;
    }
    good = good && PQsendQueryPrepared(connection, statement.name.c_str(), count, values.data(),
                                       nullptr, nullptr, 0) != 0;
  }
  if (!good || PQpipelineSync(connection) == 0) throw broken();
  return prepares;
}

void Link::send(TimePoint now) {
  while (!waiting_.empty() && !(pooled_ && !sent_.empty())) {
    const bool prepares = put(waiting_.front());
    waiting_.front().parameters.clear();
    sent_.push_back({.request = std::move(waiting_.front()), .at = now, .prepares = prepares});
    waiting_.pop_front();
    unsent_ = true;
  }
  if (unsent_) flush();
}

void Link::flush() {
  int left = 0;
  bool sent = false;
  do {
    left = PQflush(connection_.get());
    if (left < 0) throw broken();
    sent = relay_->send();
  } while (left > 0 && sent);
  unsent_ = !sent;
}

void Link::ready(TimePoint now, Finished& finished, bool soon) {
  if (!connection_) return;
  if (soon) {
    pollfd one{.fd = fd(), .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, kWorthSleeping) <= 0) return;
  }
  try {
    if (state_ == State::connecting) {
      go_on_connecting(finished);
    } else {
      if (unsent_) flush();
      receive(finished);
    }
  } catch (const Error& error) {
    drop(error, now, finished);
  } catch (const std::exception& error) {  // the system refuses something, memory mostly
    drop(Error(Errc::unreachable, error.what()), now, finished);
  }
  advance(now, finished);
}

void Link::receive(Finished& finished) {
  bool good = true;
  feed([&] { return good = PQconsumeInput(connection_.get()) != 0; });
  // What came before the end counts.
  if (state_ == State::greeting) {
    take_greeting(finished);
  } else {
    take_answers(finished);
  }
  if (!good) throw broken();
  while (PGnotify* raw = PQnotifies(connection_.get())) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> message(raw, PQfreemem);
    if (sent_.empty()) bytes_ = 0;
    if (!plan_.on_notify) continue;
    finished.list.emplace_back(
        [tell = plan_.on_notify, payload = std::string(message->extra)] { tell(payload); });
  }
}

void Link::take_answers(Finished& finished) {
  int ends = 0;
  while (!sent_.empty() && PQisBusy(connection_.get()) == 0) {
    Result result(PQgetResult(connection_.get()));
    if (!result) {  // the end of one statement, or of all
      if (PQstatus(connection_.get()) == CONNECTION_BAD) throw broken();
      if (++ends > 3) throw unreachable("the server's answers are out of order");
      continue;
    }
    ends = 0;
    // libpq's own words for a connection that is gone: nobody knows what came of it.
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR && sql_state(*result).empty())
      throw broken();
    auto& sent = sent_.front();
    if (PQresultStatus(result.get()) != PGRES_PIPELINE_SYNC) {
      if (sent.prepares && !sent.result && is_error(*result))
        prepared_.erase(sent.request.statement);
      if (!sent.result || !is_error(*sent.result)) sent.result = std::move(result);
      continue;
    }
    if (!sent.result) throw unreachable("the server's answers are out of order");
    Outcome outcome{};
    if (is_error(*sent.result)) {
      outcome.refusal = to_refusal(*sent.result, secrets_);
      if (plan_.on_error) {
        finished.list.emplace_back(
            [tell = plan_.on_error, statement = sent.request.statement] { tell(*statement); });
      }
    } else {
      outcome.result = std::move(sent.result);
    }
    finish(sent.request, std::move(outcome), finished);
    sent_.pop_front();
    bytes_ = 0;
  }
}

// Sent: the server may have done it all the same.
Outcome Link::failure(const Error& why, bool sent) const {
  return {.result = {},
          .refusal = {},
          .failure = Error(why.errc(), why.message(),
                           {.resource = {}, .node = plan_.name, .maybe_held = sent})};
}

Error Link::broken() const {
  return unreachable(first_line(PQerrorMessage(connection_.get()), secrets_));
}

void Link::note_password() {
  if (const char* password = PQpass(connection_.get())) secrets_.add(password);
}

void Link::drop(const Error& error, TimePoint now, Finished& finished) {
  const auto why = secrets_.hide(error);  // also in names that the server gave
  connection_.reset();
  relay_.reset();
  greeting_.reset();
  state_ = State::down;
  pooled_ = false;
  if (plan_.on_close) finished.list.emplace_back([tell = plan_.on_close, why] { tell(why); });
  // Each of us at another time, so that a server that comes back is not overrun.
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  const auto half = pause_.count() / 2;
  retry_at_ = now + Duration(half + std::uniform_int_distribution<Duration::rep>(0, half)(random_));
  for (; !sent_.empty(); sent_.pop_front())
    finish(sent_.front().request, failure(why, true), finished);
  for (; !waiting_.empty(); waiting_.pop_front())
    finish(waiting_.front(), failure(why, false), finished);
  plan_next();
}

short Link::events() const noexcept {
  if (state_ == State::connecting && !unsent_)
    return polling_ == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
  return static_cast<short>(unsent_ ? POLLIN | POLLOUT : POLLIN);
}

void Link::plan_next() {
  next_ = TimePoint::max();
  if (!connection_ && wants_connection()) next_ = retry_at_;
  if (connection_ && state_ != State::open) next_ = std::min(next_, opening_until_);
  if (!sent_.empty()) next_ = std::min(next_, sent_.front().at + plan_.patience);
  for (const auto& sent : sent_) {
    if (sent.request.done) next_ = std::min(next_, sent.request.deadline);
  }
  for (const auto& request : waiting_) next_ = std::min(next_, request.deadline);
}

}  // namespace interlock::postgres
