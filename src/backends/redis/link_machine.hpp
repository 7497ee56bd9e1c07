// How a connection to a Redis server goes: when it is made, what it begins with, which request a reply answers, and what becomes
// of the requests when it is lost.
//
//     state      | event                                         | next       | steps
//     -----------+-----------------------------------------------+------------+--------------------------------------------
//     down       | there is a request, or it is to be kept open, | connecting | open a stream
//                | and the pause is over                         |            |
//     down       | refuse                                        | down       | what waits is over, not sent
//     down       | redirect to another server                    | down       | (no pause)
//     connecting | the stream is open                            | greeting   | send the greetings, and then the command that
//                |                                               |            | ends the connection before, if that is in doubt
//     greeting   | a reply that may pass                         | greeting   | (the stamp, and how to end this connection)
//     greeting   | the last of them                              | open       | tell; (the next pause is short again)
//     greeting   | a reply that may not pass                     | down       | as if the stream had failed
//     connecting,| the time to connect is over                   | down       | as if the stream had failed
//     greeting   |                                               |            |
//     open       | there are requests                            | open       | send them
//     open       | a reply                                       | open       | the oldest request is answered, with the last of
//                |                                               |            | its replies
//     open       | a reply that no request waits for             | open       | a message; if none is expected: as if the stream
//                |                                               |            | had failed
//     open       | the oldest request is not answered in time    | down       | as if the stream had failed
//     all but    | the stream failed, redirect to another        | down       | close the stream, tell why; all that was sent is
//     down       | server, reconnect                             |            | over, in doubt; all that waits is over, not sent;
//                |                                               |            | (a pause, twice as long as the last one)
//     any        | the deadline of a request that was not sent   | the same   | it is over, not sent
//
// Nothing is ever sent twice. What is in doubt may still be on its way to the server. So the next connection begins with
// ending the one before, and what is sent after the doubt is done after it.
//
// A plain state machine: no lock, no thread, no socket, no clock. Link (link.hpp) drives it on sockets, and lab/simulation
// on simulated ones. It looks into replies to greetings only; the bytes of commands mean nothing to it but where the stamp
// goes.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backends/redis/address.hpp"
#include "backends/redis/protocol.hpp"

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

class LinkMachine {
 public:
  enum class State : std::uint8_t { down, connecting, greeting, open };

  struct Plan {
    std::string name{};   ///< for errors
    Endpoint endpoint{};  ///< without a host: not known yet, see `redirect`
    Access access{};
    std::vector<Greeting> greetings{};
    bool messages = false;  ///< the server may say something that answers no request
  };

  struct Pending {
    Request request;
    std::optional<TimePoint> sent{};
  };

  /// What to do, in this order, before the machine is told anything else.
  struct Steps {
    bool close = false;          ///< the stream, because of `why`
    std::deque<Pending> over{};  ///< without an answer, because of `why`; oldest first
    std::optional<Error> why{};
    bool open = false;                  ///< a stream to `endpoint`
    std::string bytes{};                ///< to send on the stream
    bool greeted = false;               ///< the connection is open
    std::optional<Request> answered{};  ///< by the reply
    bool message = false;               ///< the reply is one
  };

  /// `seed`: for the length of pauses.
  LinkMachine(Plan plan, std::uint32_t seed);

  void add(Request request) { pending_.push_back({.request = std::move(request)}); }
  /// Time passes. `keep_open`: a connection is wanted without any request, too; counts if it is down.
  void advance(TimePoint now, bool keep_open, Steps& steps);
  void opened(Steps& steps);
  void heard(const redisReply& reply, TimePoint now, Steps& steps);
  /// The stream, or what makes replies of it.
  void failed(const Error& error, TimePoint now, Steps& steps);

  void redirect(Endpoint endpoint, TimePoint now, Steps& steps);
  void reconnect(TimePoint now, Steps& steps);
  /// There is no way to the server: gives up what waits, if there is no stream.
  void refuse(const Error& why, Steps& steps);
  /// Gives out all requests.
  std::deque<Pending> abandon();
  /// For the connections from now on.
  void set_greetings(std::vector<Greeting> greetings) { plan_.greetings = std::move(greetings); }

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return plan_.endpoint; }
  /// How many there were, this one included.
  [[nodiscard]] std::uint64_t connection() const noexcept { return connection_; }
  /// The server has said something on this connection.
  [[nodiscard]] bool acquainted() const noexcept { return state_ == State::open || answered_ > 0; }
  [[nodiscard]] bool has_requests() const noexcept { return !pending_.empty(); }
  [[nodiscard]] bool expects_answer() const noexcept { return sent_ > 0; }
  /// For a request that is over because of `why`. What was sent may have been done all the same.
  [[nodiscard]] Error failure_of(const Pending& over, const Error& why) const {
    return {why.errc(),
            why.message(),
            {.resource = {}, .node = plan_.name, .maybe_held = over.sent.has_value()}};
  }
  /// When to `advance` at the latest.
  [[nodiscard]] TimePoint next(bool keep_open) const noexcept;

 private:
  [[nodiscard]] bool wants_connection(bool keep_open) const noexcept;
  [[nodiscard]] std::optional<Error> timeout(TimePoint now) const;
  void expire(TimePoint now, Steps& steps);
  void begin(TimePoint now, Steps& steps);
  void send(TimePoint now, Steps& steps);
  void put_stamp(std::string& bytes) const;
  void answer(Steps& steps);
  std::optional<Error> take_greeting(const redisReply& reply);
  std::optional<Error> check(const Greeting& greeting, const redisReply& reply);
  [[nodiscard]] std::optional<Error> check_passing(const redisReply& reply) const;
  void drop(const Error& error, TimePoint now, Steps& steps);

  Plan plan_;
  const core::Secrets secrets_;
  std::minstd_rand random_;
  State state_ = State::down;
  std::uint64_t connection_ = 0;
  std::size_t answered_ = 0;  ///< of the greetings
  std::string stamp_;
  std::string end_;       ///< the command that ends this connection from another one
  std::string end_last_;  ///< the same for the one before, if requests are in doubt on it
  TimePoint connect_until_{};
  std::deque<Pending> pending_;  ///< oldest first
  std::size_t sent_ = 0;         ///< so many of them
  TimePoint retry_at_{};
  Duration pause_{};
  std::string problem_;  ///< why there is no connection
};

}  // namespace interlock::redis
