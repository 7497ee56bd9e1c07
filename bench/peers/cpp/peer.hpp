// What a peer is to the loop of the driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace peers {

/// A job of bench/peers/README.md.
struct Work {
  std::string name;
  bool distinct = false;
  int workers = 1;
  double shared = 0;
  std::chrono::duration<double> time{};
  int most = 0;
  std::chrono::microseconds hold{};
  std::chrono::milliseconds ttl{};
  std::string register_path;
  bool records = false;

  [[nodiscard]] std::string lock_of(int worker) const { return of(name, worker); }
  [[nodiscard]] std::string register_of(int worker) const { return of(register_path, worker); }

 private:
  [[nodiscard]] std::string of(const std::string& text, int worker) const {
    return distinct && !text.empty() ? text + "-" + std::to_string(worker) : text;
  }
};

/// One worker's way to a lock. Used by one thread at a time.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  virtual ~Lock() = default;
  /// Waits for it. Its fence, or 0 where there is none.
  virtual std::uint64_t take(bool shared) = 0;
  virtual void give() = 0;
};

class Rounds;

class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual std::string settings() const = 0;
  [[nodiscard]] virtual bool has_best() const { return false; }
  /// Why it can't do that. Empty: it can.
  [[nodiscard]] virtual std::string cannot(const Work& /*work*/) const { return {}; }
  /// How many cycles to time at once: more than one where a clock takes longer than a cycle.
  [[nodiscard]] virtual int batch() const { return 1; }
  virtual std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds ttl) = 0;
  /// All rounds of all workers without a thread each, if it has a way to do so.
  virtual bool without_threads(const Work& /*work*/, std::vector<Rounds>& /*workers*/) {
    return false;
  }
};

using Addresses = std::vector<std::string>;
std::unique_ptr<Peer> interlock_peer(const Addresses& addresses, bool best);
/// On PostgreSQL: in a table, without advisory locks.
std::unique_ptr<Peer> interlock_lease_peer(const Addresses& addresses, bool best);
std::unique_ptr<Peer> redis_peer(const Addresses& addresses);
std::unique_ptr<Peer> postgres_peer(const Addresses& addresses);
std::unique_ptr<Peer> etcd_peer(const Addresses& addresses);
std::unique_ptr<Peer> timed_mutex_peer();
std::unique_ptr<Peer> shared_timed_mutex_peer();
std::unique_ptr<Peer> absl_peer();

}  // namespace peers
