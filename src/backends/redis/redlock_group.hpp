// The servers of a Redlock, and what they are sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/redis/realm.hpp"
#include "backends/redis/redlock_words.hpp"
#include "core/keeper.hpp"

namespace interlock::redis {

/// One of the servers.
class RedlockNode final : public OneServer {
 public:
  RedlockNode(Loop& loop, const KeyNames& names, const std::string& name, const Endpoint& endpoint,
              const Access& access, WakeSink wake, const WarnSink& warn);

  [[nodiscard]] const std::string& name() const noexcept { return server().name(); }
  using OneServer::style;
  [[nodiscard]] Server& server() const noexcept { return *OneServer::server(); }
};

class RedlockGroup {
 public:
  struct Member {
    std::string name;  ///< for people, without secrets
    Endpoint endpoint;
    Access access;
  };
  /// `wake`: node and owner.
  RedlockGroup(const std::string& prefix, const std::vector<Member>& members,
               const std::function<void(std::size_t, const Owner&)>& wake, const WarnSink& warn);
  RedlockGroup(const RedlockGroup&) = delete;
  RedlockGroup& operator=(const RedlockGroup&) = delete;
  /// Nobody is told anything afterwards.
  ~RedlockGroup() { loop_.stop(); }

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t majority() const noexcept { return nodes_.size() / 2 + 1; }
  [[nodiscard]] RedlockNode& node(std::size_t i) const { return *nodes_[i]; }
  [[nodiscard]] const KeyNames& names() const noexcept { return names_; }
  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  [[nodiscard]] core::Keeper& keeper() noexcept { return keeper_; }

  /// Called once for what was sent, from any thread: with the answer, or with why there is none.
  using Then = std::function<void(Vote)>;
  /// Sends again what a node does not know as a script, and does not if that is not wanted any more.
  using Again = std::function<bool(const std::function<void()>& send)>;
  /// Returns at once.
  void send(std::size_t node, Message message, Call how, Again again, Then then);

 private:
  KeyNames names_;
  Loop loop_;
  std::vector<std::unique_ptr<RedlockNode>> nodes_;
  core::Keeper keeper_;  ///< the first to end: its thread uses all of the above
};

}  // namespace interlock::redis
