// One connection to one server that comes back by itself: requests go out in order, replies come
// back in order. A Link belongs to its Loop: only the thread that drives the loop touches it.
//
//     down --(a request, or `keep_open`)--> connecting --> greeting --> open
//       ^------------------- any failure, then a pause that grows ------------'
//
// A failure fails every request that was sent (in doubt) and every one that was waiting (not
// sent). Nothing is ever sent twice. What is in doubt may still be on its way: so the next connection
// first ends the one before on the server, and what comes after the doubt is done after it.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "backends/redis/protocol.hpp"
#include "backends/redis/reader.hpp"
#include "backends/redis/socket.hpp"
#include "core/io/connection.hpp"

namespace interlock::redis {

using Done = std::function<void(Outcome)>;

struct Request {
  std::string bytes{};
  TimePoint deadline = TimePoint::max();  ///< not sent by then: failed
  /// Nobody lends a thread while this is under way.
  bool urgent = false;
  int replies = 1;  ///< how many come; the last one counts
  /// The end of its last word is written over with the stamp of the connection it is sent on.
  bool stamped = false;
  Done done{};
};

using io::Finished;

/// Notes that a request is over.
inline void finish(Request& request, Outcome outcome, Finished& finished) {
  if (request.urgent) ++finished.urgent;
  if (!request.done) return;
  finished.list.emplace_back(
      [done = std::move(request.done), outcome = std::move(outcome)]() mutable {
        done(std::move(outcome));
      });
}

class Link final : public io::Connection {
 public:
  /// Sent first on every new connection.
  struct Greeting {
    std::string bytes{};
    /// An error in reply ends the connection.
    bool must = false;
    /// Looks at the reply; what it returns ends the connection.
    std::function<std::optional<Error>(const redisReply&)> check{};
    /// Makes the connection's stamp of the reply: something that is true as long as it lasts.
    std::function<std::string(const redisReply&)> stamp{};
    /// Makes of the reply the command with which a later connection ends this one on the server.
    std::function<std::string(const redisReply&)> end{};
  };
  struct Plan {
    std::string name{};   ///< for errors
    Endpoint endpoint{};  ///< without a host: not known yet, see `redirect`
    Access access{};
    std::vector<Greeting> greetings{};
    /// Connects without being asked as long as this says so: for subscribers. Called with no lock.
    std::function<bool()> keep_open{};
    /// Called when greeted, each time.
    std::function<void()> on_open{};
    /// Called when a connection is lost, or could not be had.
    std::function<void(const Error& why)> on_close{};
    /// Called with every error that the server answers, before the request's `done`.
    std::function<void(std::string_view text)> on_error{};
    /// A message that answers no request. If empty, such a message ends the connection.
    std::function<void(const redisReply&)> on_push{};
  };

  explicit Link(Plan plan) : plan_(std::move(plan)), secrets_{plan_.access.password} {}

  void add(Request request) { waiting_.push_back(std::move(request)); }
  /// Drops the connection, if there is one, and goes on with another server.
  void redirect(Endpoint endpoint, TimePoint now, Finished& finished);
  /// Drops the connection, if there is one, and begins anew.
  void reconnect(TimePoint now, Finished& finished);
  /// Gives up what waits for a connection, if there is none.
  void refuse(const Error& why, Finished& finished);
  /// For the connections from now on.
  void set_greetings(std::vector<Greeting> greetings) { plan_.greetings = std::move(greetings); }

  void advance(TimePoint now, Finished& finished) override;
  void ready(TimePoint now, Finished& finished, bool soon) override;
  [[nodiscard]] int fd() const noexcept override { return socket_ ? socket_->fd() : -1; }
  [[nodiscard]] short events() const noexcept override;
  [[nodiscard]] TimePoint next() const noexcept override { return next_; }
  [[nodiscard]] bool active() const noexcept override {
    return socket_ || keeps_open() || !waiting_.empty();
  }
  [[nodiscard]] bool busy() const noexcept override { return !sent_.empty() || !waiting_.empty(); }
  [[nodiscard]] bool expects_answer() const noexcept override {
    return greeted_ && !sent_.empty() && out_.empty() && socket_->can_read_soon();
  }
  void abandon(Finished& finished) override;

 private:
  struct Sent {
    Request request;
    TimePoint at;
  };

  [[nodiscard]] bool wants_connection() const noexcept {
    const bool known = !plan_.endpoint.host.empty() || !plan_.endpoint.socket.empty();
    return known && (keeps_open() || !waiting_.empty());
  }
  [[nodiscard]] bool keeps_open() const noexcept { return plan_.keep_open && plan_.keep_open(); }
  void open(TimePoint now);
  void greet();
  void send(TimePoint now);
  void put_stamp(std::string& bytes) const;
  void receive(Finished& finished, bool soon);
  void take(Response reply, Finished& finished);
  void take_greeting(const redisReply& reply, Finished& finished);
  void check_greeting(const Greeting& greeting, const redisReply& reply);
  void check_passing(const redisReply& reply) const;
  [[nodiscard]] Outcome failure(const Error& why, bool sent) const;
  void drop(const Error& error, TimePoint now, Finished& finished);
  void plan_next();

  Plan plan_;
  const core::Secrets secrets_;
  std::optional<Socket> socket_;
  std::optional<Reader> reader_;
  bool greeted_ = false;
  std::size_t answered_ = 0;  ///< of the greetings
  bool opened_ = false;       ///< the socket is connected
  std::string stamp_;
  std::string end_;               ///< the command that ends this connection from another one
  std::string end_last_;          ///< the same for the one before, if requests are in doubt on it
  std::uint64_t connection_ = 0;  ///< how many there were
  TimePoint opening_until_{};
  std::deque<Request> waiting_;
  std::deque<Sent> sent_;
  std::string out_;
  std::size_t out_done_ = 0;
  TimePoint retry_at_{};
  TimePoint next_ = TimePoint::max();
  Duration pause_{};
  std::string problem_;  ///< why there is no connection
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace interlock::redis
