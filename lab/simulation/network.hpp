// Simulated servers, and what a client says to them.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/redis/redlock_calls.hpp"
#include "connection.hpp"
#include "node.hpp"

namespace simulation {

using interlock::redis::RedlockCalls;

/// A server with one node of the Redlock.
class Host {
 public:
  Host(World& world, std::size_t clients, OwnClock clock, Node::Tell tell);

  [[nodiscard]] std::uint64_t clock() const {
    return static_cast<std::uint64_t>(clock_.at(world_.now()).count()) / 1000;
  }
  [[nodiscard]] Node& node() { return node_; }
  [[nodiscard]] bool down() const { return down_; }

  /// What arrives: at once, or when the process goes on. `epoch`: lost if the server was started again since.
  void arrive(std::function<void()> what);
  void stop() { stopped_ = true; }
  void go_on();
  void kill();
  void start(Node::Restart how);
  void forget_scripts() { scripts_ = 0; }
  void set(Duration by) { clock_.set(by); }
  /// It answers every command with that it is loading its data, or with that it is busy.
  void refuse(const char* why, Time until) {
    refusal_ = why;
    refuses_until_ = until;
  }
  /// It ends connections in the middle of their greetings, some of them.
  void turn_away(Time until) { turns_away_until_ = until; }
  void heal();

  /// One of those that connect: a client has two, one for commands and one for messages.
  struct Peer {
    std::vector<std::uint64_t> connections{};  ///< that are open
    std::uint64_t newest = 0;                  ///< that has sent a script
    std::uint64_t listens = 0;                 ///< is subscribed
    void accept(std::uint64_t connection) { connections.push_back(connection); }
    void end(std::uint64_t connection) { std::erase(connections, connection); }
    [[nodiscard]] bool has(std::uint64_t connection) const {
      return std::find(connections.begin(), connections.end(), connection) != connections.end();
    }
  };
  [[nodiscard]] Peer& peer(std::size_t number) { return peers_[number]; }
  [[nodiscard]] bool knows(Message::Kind kind) const { return (scripts_ & mask(kind)) != 0; }
  void learn(Message::Kind kind) { scripts_ |= mask(kind); }
  void learn_all() { scripts_ = ~0U; }
  [[nodiscard]] const char* refusal() const {
    return world_.now() < refuses_until_ ? refusal_ : nullptr;
  }
  [[nodiscard]] bool turns_away() const {
    return world_.now() < turns_away_until_ && world_.random.one_in(4);
  }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

 private:
  static unsigned mask(Message::Kind kind) { return 1U << static_cast<unsigned>(kind); }

  World& world_;
  OwnClock clock_;
  Node node_;
  std::vector<Peer> peers_;
  bool stopped_ = false, down_ = false;
  unsigned scripts_ = ~0U;
  std::uint64_t epoch_ = 1;
  std::vector<std::function<void()>> inbox_;
  const char* refusal_ = nullptr;
  Time refuses_until_{}, turns_away_until_{};
};

/// What one client has of one server: a connection for commands and one for messages, as Server has. It sends scripts by
/// their names, and in full if the server does not know them (any more).
class Wire {
 public:
  /// What becomes of what was sent.
  class Owner : public Connection::Process {
   public:
    virtual void heard(std::uint64_t letter, std::size_t node, Vote vote) = 0;
    [[nodiscard]] virtual bool may_send(std::uint64_t letter) const = 0;
    virtual void hears(std::size_t node) = 0;
    virtual void turn(const interlock::Owner& owner, std::size_t node) = 0;
  };

  Wire(World& world, const Path::Weather& weather, Host& host, Owner& owner, std::size_t client,
       std::size_t node, Duration call_timeout);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void send(RedlockCalls::Actions::Send send);
  /// True: messages reach us already. Else Owner::hears, perhaps.
  bool listen();
  /// The node tells that it is somebody's turn. False: we don't listen.
  bool publish(const interlock::Owner& owner);

  // What goes wrong.
  void part(bool there, bool back);  ///< in which directions nothing arrives
  void join();
  /// Each message takes up to so much longer.
  void lag(Duration most) { path_.lag = most; }
  void cut(bool delivers);  ///< `delivers`: what is on its way still arrives, perhaps late
  void restarted();
  /// The process of the client has ended.
  void close();

 private:
  struct Letter {
    std::uint64_t number;
    Message message;
    TimePoint deadline;
    bool in_full;
    bool served = false;
  };

  [[nodiscard]] LinkMachine::Plan link(std::vector<Greeting> greetings) const;
  [[nodiscard]] Connection::Plan for_commands();
  [[nodiscard]] Connection::Plan for_messages();
  void post(Letter letter);
  void over(std::size_t letter, const std::optional<Error>& failure);
  std::optional<Reply> serve(std::uint64_t connection, Command command);
  std::optional<Reply> serve_script(std::uint64_t connection, Command command);
  void check(std::uint64_t connection, Command command);
  [[nodiscard]] Host::Peer& commander() { return path_.host.peer(client_ * 2); }
  [[nodiscard]] Host::Peer& listener() { return path_.host.peer(client_ * 2 + 1); }

  Path path_;
  Owner& owner_;
  const std::size_t client_, node_;
  const Duration call_timeout_;
  std::deque<Letter> letters_;  // all there ever were: one may arrive late
  TimePoint wanted_until_{};
  Connection commands_;
  Connection messages_;
};

}  // namespace simulation
