// One connection to the database that comes back by itself: requests go out in order, in a pipeline,
// each a transaction of its own, and answers come back in order. A Link belongs to its loop: only the
// thread that leads it touches the link.
//
//     down --(a request, or `keep_open`)--> connecting --> greeting --> open
//       ^------------------- any failure, then a pause that grows ------------'
//
// A failure fails every request that was sent (in doubt) and every one that was waiting (not sent).
// Nothing is ever sent twice.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/relay.hpp"
#include "backends/postgres/result.hpp"
#include "core/io/loop.hpp"

namespace interlock::postgres {

using io::Finished;
using Done = std::function<void(Outcome)>;

/// Prepared once on every connection.
struct Statement {
  static constexpr std::size_t kMebibyte = std::size_t{1} << 20U;

  std::string name{};
  std::string text{};
  /// A longer answer ends the connection, so that a hostile server can't fill the memory.
  std::size_t most_bytes = 4 * kMebibyte;
  /// Where there is no schema, it is made. All other statements have no rows then.
  bool makes_schema = false;
};

struct Request {
  const Statement* statement = nullptr;
  std::vector<std::string> parameters{};
  TimePoint deadline = TimePoint::max();  ///< not answered by then: failed
  /// Nobody lends a thread while this is under way.
  bool urgent = false;
  /// The server answers when something happens: nobody should look for it all the time.
  bool waits = false;
  Done done{};
};

class Link final : public io::Connection {
 public:
  using Keywords = std::vector<std::pair<std::string, std::string>>;

  /// A connection that was just made, while it is greeted.
  struct Greeting {
    Link& link;
    int step = 0;                      ///< how many statements were answered
    const PGresult* answer = nullptr;  ///< the last one's
    int process = 0;                   ///< what the other side calls its process
    bool makes_schema = false;         ///< so says a request that waits for the connection
  };
  struct Plan {
    std::string name{};  ///< for errors
    /// For libpq. The hosts are apart, so that each of them is the first one to try now and then.
    Keywords keywords{};
    std::vector<std::pair<std::string, std::string>> hosts{};  ///< host and port; none: libpq's
    Duration connect_timeout = std::chrono::seconds(3);
    /// So long an answer may be out before the connection is given up.
    Duration patience = std::chrono::seconds(5);
    /// Connects again without being asked.
    bool keep_open = false;
    /// What to run next before the connection counts as open; empty: it is. Throws Error to end it.
    std::function<std::string(const Greeting&)> greet{};
    std::function<void()> on_open{};
    /// Called when a connection is lost, or could not be had.
    std::function<void(const Error&)> on_close{};
    std::function<void(std::string payload)> on_notify{};
    /// The server answered with an error, be it that nobody waits for the answer any more.
    std::function<void(const Statement&)> on_error{};
  };

  explicit Link(Plan plan) : plan_(std::move(plan)) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() override = default;

  void add(Request request) { waiting_.push_back(std::move(request)); }
  void set_patience(Duration patience) { plan_.patience = std::max(plan_.patience, patience); }
  /// A pooler is in between, which knows nothing of prepared statements: only one request at a time
  /// is out, with its text.
  void set_pooled() { pooled_ = true; }
  /// There is no schema, and no request that waits makes it: they get no rows, and the connection is closed.
  void set_empty(std::optional<Error> unmakeable) {
    empty_ = true;
    unmakeable_ = std::move(unmakeable);
  }
  /// What the parameters of every request on this connection begin with.
  void set_session(std::vector<std::string> session) { session_ = std::move(session); }
  /// Drops the connection, if there is one, and begins anew.
  void reconnect(TimePoint now, Finished& finished);
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }

  void advance(TimePoint now, Finished& finished) override;
  void ready(TimePoint now, Finished& finished, bool soon) override;
  [[nodiscard]] int fd() const noexcept override {
    if (relay_) return relay_->fd();
    return connection_ ? PQsocket(&*connection_) : -1;
  }
  [[nodiscard]] short events() const noexcept override;
  [[nodiscard]] TimePoint next() const noexcept override { return next_; }
  [[nodiscard]] bool active() const noexcept override {
    return connection_ || plan_.keep_open || !waiting_.empty();
  }
  [[nodiscard]] bool busy() const noexcept override { return owes() || !waiting_.empty(); }
  [[nodiscard]] bool expects_answer() const noexcept override {
    return state_ == State::open && owes() && !unsent_;
  }
  void abandon(Finished& finished) override;

 private:
  enum class State : std::uint8_t { down, connecting, greeting, open };
  struct FinishConnection {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  struct Sent {
    Request request;
    TimePoint at;
    bool prepares = false;
    Result result{};
  };

  [[nodiscard]] bool owes() const noexcept {
    return std::any_of(sent_.begin(), sent_.end(),
                       [](const Sent& sent) { return !sent.request.waits; });
  }
  [[nodiscard]] bool wants_connection() const noexcept {
    return plan_.keep_open || !waiting_.empty();
  }
  void open(TimePoint now);
  void go_on_connecting(Finished& finished);
  void greet(const PGresult* answer, Finished& finished);
  void answer_without_schema(Finished& finished);
  void take_greeting(Finished& finished);
  void send(TimePoint now);
  /// True if its statement goes along, to be prepared.
  bool put(const Request& request);
  void flush();
  void receive(Finished& finished);
  /// Hands libpq some of what came, and has it read until nothing is left or `read` says no. Throws
  /// Error if the server sends more than it was asked for.
  template <class Read>
  void feed(Read read);
  bool poll_connecting();
  void take_answers(Finished& finished);
  void give_up_late(TimePoint now, Finished& finished);
  [[nodiscard]] Outcome failure(const Error& why, bool sent) const;
  /// What went wrong with the connection, in libpq's words.
  [[nodiscard]] Error broken() const;
  /// Each host may have a password of its own.
  void note_password();
  void drop(const Error& error, TimePoint now, Finished& finished);
  void plan_next();

  Plan plan_;
  std::optional<Relay> relay_;  ///< while libpq has an open socket; outlives libpq's goodbye
  std::unique_ptr<PGconn, FinishConnection> connection_;
  core::Secrets secrets_;  ///< the passwords that it may have told a server
  State state_ = State::down;
  bool pooled_ = false;
  bool empty_ = false;
  std::optional<Error> unmakeable_{};
  PostgresPollingStatusType polling_ = PGRES_POLLING_WRITING;
  std::size_t bytes_ = 0;  ///< received of the incomplete answer
  bool unsent_ = false;    ///< libpq has bytes that the socket did not take yet
  int greeted_ = 0;
  Result greeting_{};
  TimePoint opening_until_{};
  std::size_t attempts_ = 0;
  std::set<const Statement*> prepared_;
  std::vector<std::string> session_;
  std::deque<Request> waiting_;
  std::deque<Sent> sent_;
  TimePoint retry_at_{};
  TimePoint next_ = TimePoint::max();
  Duration pause_{};
  std::minstd_rand random_{std::random_device{}()};
};

/// Any thread: asks over this link.
void post(io::Loop& loop, const std::shared_ptr<Link>& link, Request request);

}  // namespace interlock::postgres
