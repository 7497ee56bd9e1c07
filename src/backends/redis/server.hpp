// One Redis server: a connection for commands, one to be woken on, and the scripts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/redis/loop.hpp"
#include "backends/redis/scripts.hpp"

namespace interlock::redis {

class Server {
 public:
  /// `wake`: called with every owner that a message names, without any lock.
  Server(Loop& loop, std::string name, const Endpoint& endpoint, const Access& access,
         std::string channel, WakeSink wake);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  using Then = std::function<void(Outcome)>;

  void send(std::string bytes, Call how, Then then);
  /// By its hash, and in full if the server does not know it (any more).
  void run(const Script& script, Words words, Call how, Then then);

  /// Somebody waits from now on: makes sure that we hear of his turn. True: we listen already.
  /// False: `then` is called as soon as we do, or can't (false); his turn may have come by then.
  bool listen(std::function<void(bool listening)> then);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }

 private:
  struct Subscription {
    explicit Subscription(WakeSink wake) : sink(std::move(wake)) {}
    const WakeSink sink;
    std::mutex mutex;
    bool wanted = false;
    bool open = false;
    std::vector<std::function<void(bool)>> then;

    void is(bool now_open);
    void message(const redisReply& reply) const;
  };

  [[nodiscard]] std::vector<Link::Greeting> greetings(const Access& access) const;

  Loop& loop_;
  const std::string name_;
  const std::string channel_;
  const Endpoint endpoint_;
  const Access access_;
  std::shared_ptr<Subscription> subscription_;
  Loop::Handle commands_;
  Loop::Handle messages_;
};

}  // namespace interlock::redis
