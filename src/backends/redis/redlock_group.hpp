// The servers of a Redlock, asked together: each answers in its own time, and whoever does not
// within a deadline has not answered.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/redis/realm.hpp"
#include "core/keeper.hpp"

namespace interlock::redis {

/// The scripts that only a Redlock has.
struct RedlockScripts {
  Script acquire;
  Script confirm;
  Script yield;
  Script renew;
  Script heal;
  Script release;
  Script mend;

  static const RedlockScripts& all();
  /// All that a node is asked to run, the look at a resource included.
  [[nodiscard]] std::vector<const Script*> list() const;
};

/// One of the servers.
class RedlockNode final : public OneServer {
 public:
  RedlockNode(Loop& loop, const KeyNames& names, const std::string& name, const Endpoint& endpoint,
              const Access& access, WakeSink wake, const WarnSink& warn);

  [[nodiscard]] const std::string& name() const noexcept { return server().name(); }
  using OneServer::style;
  [[nodiscard]] Server& server() const noexcept { return *OneServer::server(); }
  /// The last question to it was not answered.
  [[nodiscard]] bool silent() const noexcept { return silent_; }
  void set_silent(bool silent) noexcept { silent_ = silent; }

 private:
  std::atomic<bool> silent_ = false;
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

  /// Called once for every node that is asked, in any order, from any thread: with its answer, or
  /// with the failure to give one in time.
  using Each = std::function<void(std::size_t node, Outcome outcome)>;
  using MakeWords = std::function<Words(std::size_t node)>;

  /// Nothing that a gate stands before is sent after it was closed: what follows up on an answer
  /// would bring back what a release took away.
  class Gate {
   public:
    template <class Send>
    bool unless_closed(Send send) {
      const std::lock_guard lock(mutex_);
      if (!closed_) send();
      return !closed_;
    }
    void close() {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }

   private:
    std::mutex mutex_;
    bool closed_ = false;
  };
  using GatePtr = std::shared_ptr<Gate>;

  /// Runs a script on these nodes at once.
  void ask(const std::vector<std::size_t>& nodes, const Script& script, const MakeWords& words,
           Call how, const GatePtr& gate, Each each);
  /// The same on one node, and nobody waits for the answer.
  void tell(std::size_t node, const Script& script, Words words, Duration within,
            const GatePtr& gate);

  /// The same, again and again until the node has done it, or the time is over. For what takes something
  /// away: left on one node after the other, it would be in everybody's way.
  void insist(std::size_t node, const Script& script, Words words, Duration within,
              const GatePtr& gate);

  /// A claim's words for a node. `extra` is what Redlock's scripts find in ARGV[5].
  [[nodiscard]] Words words(std::size_t node, const Claim& claim, bool queue,
                            const std::string& extra) const;
  /// The same for a release of all that the owner has.
  [[nodiscard]] Words words_to_release(std::size_t node, const Claim& claim) const;
  [[nodiscard]] std::vector<std::size_t> everybody() const;

 private:
  class Poll;
  class Debts;

  void run(std::size_t node, const Script& script, Words words, Call how, const GatePtr& gate,
           Server::Then then);

  KeyNames names_;
  Loop loop_;
  std::vector<std::unique_ptr<RedlockNode>> nodes_;
  std::vector<std::shared_ptr<Debts>> debts_;  ///< of each node
  core::Keeper keeper_;  ///< the first to end: its thread uses all of the above
};

}  // namespace interlock::redis
