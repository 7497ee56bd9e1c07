// Simulated servers, and each client's connections to them.
//
// What TCP promises per connection holds: messages arrive in the order in which they were sent, and none is lost unless
// the connection is. Messages of a connection that was given up may arrive late, until the next connection of the same
// client is greeted: it ends the one before on the server (see Link). A message may be served twice in a row.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/redis/redlock_calls.hpp"
#include "node.hpp"
#include "world.hpp"

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

  // Of each client:
  struct Peer {
    std::uint64_t connection = 0;  ///< the only one that is served
    bool listens = false;
  };
  [[nodiscard]] Peer& peer(std::size_t client) { return peers_[client]; }
  [[nodiscard]] bool knows(Message::Kind kind) const { return (scripts_ & mask(kind)) != 0; }
  void learn(Message::Kind kind) { scripts_ |= mask(kind); }
  void learn_all() { scripts_ = ~0U; }
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
};

/// How fast messages travel at this moment, and how often they are doubled.
struct Weather {
  Duration least = 100us, most = 2ms;
  std::uint64_t doubled = 0;  ///< one in so many; 0: none
};

/// The connections of one client to one server.
class Wire {
 public:
  /// What becomes of what was sent.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void heard(std::uint64_t letter, std::size_t node, Vote vote) = 0;
    [[nodiscard]] virtual bool may_send(std::uint64_t letter) const = 0;
    virtual void hears(std::size_t node) = 0;
    virtual void turn(const interlock::Owner& owner, std::size_t node) = 0;
    /// Runs it when the client runs.
    virtual void run(std::function<void()> what) = 0;
    [[nodiscard]] virtual TimePoint now() const = 0;
  };

  Wire(World& world, const Weather& weather, Host& host, Owner& owner, std::size_t client,
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
  void lag(Duration most) { lag_ = most; }
  void cut(bool delivers);  ///< `delivers`: what is on its way still arrives
  void restarted();
  void close() { closed_ = true; }

 private:
  enum class State : std::uint8_t { down, connecting, up };
  struct Sent {
    std::uint64_t letter;
    Message message;
    TimePoint at;
  };

  [[nodiscard]] Duration delay();
  void to_host(std::function<void()> what);
  void to_client(std::uint64_t connection, std::function<void()> what);
  void connect();
  void greeted();
  void put(std::uint64_t letter, Message message, bool in_full);
  void serve(std::uint64_t connection, std::uint64_t letter, const Message& message, bool in_full);
  void reply(std::uint64_t letter, Vote vote);
  void unknown_script(std::uint64_t letter);
  void drop(const std::string& why);
  void fail(std::uint64_t letter, const std::string& why, bool sent);
  void watch(Duration after);

  World& world_;
  const Weather& weather_;
  Host& host_;
  Owner& owner_;
  std::size_t client_, node_;
  Duration call_timeout_;
  State state_ = State::down;
  std::uint64_t connection_ = 0;
  std::uint64_t host_epoch_ = 0;  // when it was connected
  std::uint64_t undelivered_ =
      0;  // connections up to this one were cut, and nothing of them arrives
  bool closed_ = false;
  bool listens_ = false, subscribing_ = false;
  bool parted_there_ = false, parted_back_ = false;
  std::vector<std::function<void()>> held_there_, held_back_;
  Time last_there_{}, last_back_{};
  std::deque<RedlockCalls::Actions::Send> waiting_;
  std::deque<Sent> sent_;
  TimePoint retry_at_{};
  Duration pause_{};
  Duration lag_{};
  bool dialing_ = false;  // when the pause is over
};

}  // namespace simulation
