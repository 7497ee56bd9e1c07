// One Redis server: a connection for commands, one to be woken on, and the scripts.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/redis/loop.hpp"
#include "backends/redis/scripts.hpp"

namespace interlock::redis {

/// How a connection begins if there is a password.
std::vector<Link::Greeting> log_in(const Access& access);

class Server {
 public:
  /// How it differs from any other.
  struct Kind {
    bool master_only = false;  ///< asks it for its role, and leaves a replica at once
    bool sharded = false;      ///< the channel is of a cluster's shard
    /// What to load when a connection opens; none: all that a single server needs.
    std::vector<const Script*> scripts{};
    /// Requests that are `stamped` carry the beginning of its run_id, if it says what that is.
    bool stamps_run = false;
    /// Has a connection for WAIT, and is left at once if it does not know WAIT.
    int min_replicas = 0;
  };
  static constexpr std::size_t kRunDigits = 16;
  /// `wake`: called with every owner that a message names, without any lock.
  Server(Loop& loop, std::string name, const Endpoint& endpoint, const Access& access,
         std::string channel, WakeSink wake, Kind kind);
  Server(Loop& loop, std::string name, const Endpoint& endpoint, const Access& access,
         std::string channel, WakeSink wake)
      : Server(loop, std::move(name), endpoint, access, std::move(channel), std::move(wake),
               Kind()) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  using Then = std::function<void(Outcome)>;

  void send(std::string bytes, Call how, Then then);
  /// A request that ends with `kRunDigits` zeros, in their place the server's run_id.
  void send_stamped(std::string bytes, Call how, Then then);
  /// By its hash, and in full if the server does not know it (any more).
  /// `asking`: a cluster's node is to serve a slot that is on its way to it.
  void run(const Script& script, Words words, Call how, Then then, bool asking = false);

  /// The same on a connection apart, which may be blocked. Only if Kind::min_replicas is set.
  void send_apart(std::string bytes, Call how, Then then);
  void run_apart(const Script& script, Words words, Call how, Then then);

  /// Somebody waits: makes sure that we hear when it is its turn. True: we listen already. Else `late` is
  /// called once we do, as the turn may have come before; never, if the connection can't be had. A
  /// connection that was lost is made again only as long as somebody asked for it lately.
  bool listen(std::function<void()> late);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Duration call_timeout() const noexcept { return access_.call_timeout; }
  [[nodiscard]] std::string host() const {
    const std::lock_guard lock(subscription_->mutex);
    return endpoint_.host;
  }

  /// Another server has taken over.
  void redirect(const Endpoint& endpoint);
  /// Drops its connections and begins anew.
  void reconnect();
  /// There is no way to it: gives up what waits for a connection.
  void refuse(const Error& why);
  /// Listens there from now on.
  void set_channel(std::string channel);
  /// Called once, when it is connected for the first time, with what INFO says. Set it first.
  using Facts = std::map<std::string, std::string, std::less<>>;
  void on_facts(std::function<void(const Facts&)> tell);

  /// Called, without any lock, when the connection for messages is lost. Set it first.
  void on_deaf(std::function<void()> tell) { subscription_->deaf = std::move(tell); }

 private:
  struct Subscription {
    explicit Subscription(WakeSink wake) : sink(std::move(wake)) {}
    const WakeSink sink;
    std::mutex mutex;
    TimePoint wanted_until{};
    bool open = false;
    std::vector<std::function<void()>> late;
    std::function<void()> deaf;

    [[nodiscard]] bool wanted();
    void is(bool now_open);
    void message(const redisReply& reply) const;
  };

  void post(const Loop::Handle& link, std::string bytes, const Call& how, Then then,
            int replies = 1);
  void run_on(const Loop::Handle& link, const Script& script, Words words, Call how, Then then,
              bool asking);
  [[nodiscard]] std::vector<Link::Greeting> greetings(const Access& access) const;
  [[nodiscard]] std::vector<Link::Greeting> listening() const;

  Loop& loop_;
  const std::string name_;
  const Access access_;
  const Kind kind_;
  std::shared_ptr<Subscription> subscription_;
  Loop::Handle commands_;
  Loop::Handle apart_;
  const std::shared_ptr<std::function<void()>> first_open_ =
      std::make_shared<std::function<void()>>();
  // Guarded by the subscription's mutex:
  std::string channel_;
  Endpoint endpoint_;
  Loop::Handle messages_;
};

}  // namespace interlock::redis
