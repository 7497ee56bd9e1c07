// The master of a name, as Sentinel says: now, and after every failover.
//
// One connection to each sentinel, kept open: it is asked for the master when it opens, and when it
// tells of a switch. A sentinel that knows an older epoch than another one is not believed; and a
// server that is no master is left at once, whatever a sentinel says.
#pragma once

#include <mutex>

#include "backends/redis/realm.hpp"

namespace interlock::redis {

class Sentinel final : public OneServer {
 public:
  struct Plan {
    std::vector<Endpoint> sentinels;
    Access sentinel_access;
    std::string master;
    Access access;
    std::string where;
    int min_replicas = 0;
  };
  Sentinel(Loop& loop, const KeyNames& names, const Plan& plan, WakeSink wake, WarnSink warn);
  ~Sentinel() override;

  void run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
           Server::Then then) override;

 private:
  /// What a sentinel said. The epoch grows with every failover.
  void learn(const Endpoint& master, std::uint64_t epoch);
  void told(std::size_t sentinel, const redisReply& message);
  /// Why nobody knows the master; nothing if somebody does, or may yet.
  [[nodiscard]] std::optional<Error> lost() const;
  void note(std::size_t sentinel, const Error& problem);

  Loop& loop_;
  const Access access_;
  const WarnSink warn_;
  const std::vector<Endpoint> sentinels_;
  const std::string name_;
  mutable std::mutex mutex_;
  // Guarded by the mutex:
  std::vector<Loop::Handle> links_;
  std::vector<std::optional<Error>> problems_;  ///< of each sentinel
  Endpoint master_;
  std::uint64_t epoch_ = 0;
};

}  // namespace interlock::redis
