// One connection to one server that comes back by itself: requests go out in order, replies come back in order. A
// LinkMachine decides; a Link brings it the socket and the time, and does what it says. A Link belongs to its Loop: only
// the thread that drives the loop touches it.
#pragma once

#include <algorithm>

#include "backends/redis/link_machine.hpp"
#include "backends/redis/reader.hpp"
#include "backends/redis/socket.hpp"
#include "core/io/connection.hpp"

namespace interlock::redis {

using io::Finished;

class Link final : public io::Connection {
 public:
  using Greeting = redis::Greeting;
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

  explicit Link(Plan plan);

  void add(Request request) { machine_.add(std::move(request)); }
  /// Drops the connection, if there is one, and goes on with another server.
  void redirect(Endpoint endpoint, TimePoint now, Finished& finished);
  /// Drops the connection, if there is one, and begins anew.
  void reconnect(TimePoint now, Finished& finished);
  /// Gives up what waits for a connection, if there is none.
  void refuse(const Error& why, Finished& finished);
  /// For the connections from now on.
  void set_greetings(std::vector<Greeting> greetings) {
    machine_.set_greetings(std::move(greetings));
  }

  void advance(TimePoint now, Finished& finished) override;
  void ready(TimePoint now, Finished& finished, bool soon) override;
  [[nodiscard]] int fd() const noexcept override { return socket_ ? socket_->fd() : -1; }
  [[nodiscard]] short events() const noexcept override;
  [[nodiscard]] TimePoint next() const noexcept override {
    const auto next = machine_.next(keeps_open());
    return owes() ? std::min(next, again_at_) : next;
  }
  [[nodiscard]] bool active() const noexcept override {
    return socket_ || keeps_open() || machine_.has_requests() || owes();
  }
  [[nodiscard]] bool busy() const noexcept override { return machine_.has_requests(); }
  [[nodiscard]] bool expects_answer() const noexcept override {
    return machine_.expects_answer() && out_.empty() && socket_->can_read_soon();
  }
  void abandon(Finished& finished) override;

 private:
  using State = LinkMachine::State;

  /// Without a connection.
  [[nodiscard]] bool keeps_open() const noexcept {
    return !socket_ && plan_.keep_open && plan_.keep_open();
  }
  /// Something was left undone, as there was no memory for it.
  [[nodiscard]] bool owes() const noexcept {
    return broken_ || steps_.close || steps_.answered || !steps_.over.empty();
  }
  [[nodiscard]] bool is_open() const noexcept { return machine_.state() > State::connecting; }
  void perform(Finished& finished);
  void close(Finished& finished);
  void open();
  void write();
  void receive(TimePoint now, Finished& finished, bool soon);
  void take(Response reply, TimePoint now, Finished& finished);
  void answered(Response reply, Finished& finished);
  void fail(const Error& error, TimePoint now, Finished& finished);

  Plan plan_;
  const core::Secrets secrets_;
  LinkMachine machine_;
  LinkMachine::Steps steps_;
  std::optional<Socket> socket_;
  std::optional<Reader> reader_;
  std::string out_;
  std::size_t out_done_ = 0;
  bool broken_ = false;   ///< the machine has to hear that it failed, and nothing else before that
  TimePoint again_at_{};  ///< when to try again what was left undone
};

}  // namespace interlock::redis
