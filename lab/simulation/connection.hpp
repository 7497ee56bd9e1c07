// A connection of a client to a simulated server: the library's LinkMachine over simulated streams.
//
// What TCP promises holds: messages of a stream arrive in the order in which they were sent, and none is lost unless the stream
// is. Streams know nothing of each other: what was sent on one that was given up may arrive long after what was sent on the
// next one.
#pragma once

#include <memory>
#include <vector>

#include "backends/redis/link_machine.hpp"
#include "backends/redis/redlock_votes.hpp"
#include "world.hpp"

namespace simulation {

using interlock::Error;
using interlock::redis::Greeting;
using interlock::redis::LinkMachine;
using interlock::redis::Vote;

/// One command, in as few bytes as a std::string keeps without an allocation.
struct Command {
  enum class Kind : char {
    info = 'I',  ///< CLIENT INFO
    load = 'L',  ///< SCRIPT LOAD
    run = 'R',   ///< INFO server
    subscribe = 'S',
    kill = 'K',    ///< CLIENT KILL of the connection `number`
    script = 'M',  ///< the message `number`
  };
  static constexpr std::size_t kSize = 15;

  Kind kind = Kind::script;
  std::uint64_t number = 0;
  std::uint32_t stamp = 0;  ///< of a script: the server's run, if the client knows it

  [[nodiscard]] std::string bytes() const;
  static Command parse(std::string_view bytes);
};

struct Reply {
  int type = REDIS_REPLY_STATUS;
  std::string text{};
  Vote vote{};              ///< of a script
  interlock::Owner turn{};  ///< of a message: whose turn it is
};

class Host;

/// How messages travel between one client and one node.
struct Path {
  /// For messages in general, at this moment.
  struct Weather {
    Duration least = 100us, most = 2ms;
    std::uint64_t doubled = 0;  ///< one in so many is served twice; 0: none
  };
  World& world;
  const Weather& weather;
  Host& host;
  Duration lag{};  ///< each message takes up to so much longer
  bool parted_there = false, parted_back = false;

  [[nodiscard]] Duration delay() const;
};

class Connection {
 public:
  /// The process of the client.
  class Process {
   public:
    virtual ~Process() = default;
    /// Runs it when the process runs.
    virtual void run(std::function<void()> what) = 0;
    /// Runs it when its clock shows so much, or when it goes on.
    virtual void at(TimePoint when, std::function<void()> what) = 0;
    [[nodiscard]] virtual TimePoint now() const = 0;
  };
  struct Plan {
    LinkMachine::Plan link;
    std::size_t peer = 0;  ///< to the host
    /// What the server does with a command: it answers, or ends the connection.
    std::function<std::optional<Reply>(std::uint64_t connection, Command command)> serve;
    std::function<bool()> keep_open{};
    std::function<void()> on_open{};
    std::function<void(const Reply&)> on_message{};
  };

  Connection(Path& path, Process& process, Plan plan);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool open() const { return machine_.state() == LinkMachine::State::open; }
  void add(interlock::redis::Request request);
  void advance();
  /// What the request was answered whose `done` is called just now.
  [[nodiscard]] Reply& reply() { return reply_; }
  /// The server says something of itself on this connection, the one of that number.
  void say(std::uint64_t connection, Reply reply);

  /// The process has ended: its kernel closes the stream.
  void close() { hang_up(); }

  // What goes wrong.
  void join();              ///< after its path has been parted
  void cut(bool delivers);  ///< `delivers`: what is on its way still arrives, perhaps late
  void server_ended();

 private:
  struct Stream {
    std::uint64_t number;
    Time last_there{}, last_back{};
    Time stuck_until{};  ///< what is on its way there waits
    bool lost = false;   ///< nothing arrives there any more
  };
  using StreamPtr = std::shared_ptr<Stream>;
  struct Packet {
    StreamPtr stream;
    std::function<void()> what;
  };

  void there(const StreamPtr& stream, std::function<void()> what);
  void arrive_there(Packet packet);
  void back(const StreamPtr& stream, std::function<void()> what);
  void arrive_back(Packet packet);
  void perform();
  void dial();
  void hang_up();
  void send(std::string_view bytes);
  void serve(const StreamPtr& stream, Command command);
  void hear(Reply reply);
  void fail(const std::string& why);
  void look_again();

  Path& path_;
  Process& process_;
  Plan plan_;
  LinkMachine machine_;
  LinkMachine::Steps steps_;
  StreamPtr stream_;
  Reply reply_;
  std::vector<Packet> held_there_, held_back_;
  TimePoint looks_at_ = TimePoint::max();
};

}  // namespace simulation
