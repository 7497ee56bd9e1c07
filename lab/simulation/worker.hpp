// A user of one client: takes locks in all the ways there are, and does what one does with a lease. A stream of chance of
// its own decides what comes next.
#pragma once

#include "hold.hpp"

namespace simulation {

class Worker {
 public:
  struct Habits {
    Duration longest_ttl = 4s;
    bool long_ttl = false;    ///< sometimes ten minutes, so that nothing goes away by itself
    bool identities = false;  ///< sometimes one of two
    bool changes = true;      ///< upgrades and downgrades
    std::size_t resources = 2;
    /// Takes it exclusively only, for a short time, and again and again.
    bool hasty = false;
  };

  Worker(Client& client, Checks& checks, const Habits& habits, Random random)
      : client_(client), checks_(checks), habits_(habits), random_(random) {}

  void start();
  /// Gives back what it has, waits for what it waits for, and begins nothing new.
  void finish() { finishing_ = true; }
  /// Once more: takes this exclusively, however long that takes, and gives it back.
  void probe(const std::string& resource, std::function<void()> granted);
  [[nodiscard]] bool idle() const { return idle_; }
  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] bool takes_long_ttls() const { return habits_.long_ttl; }
  [[nodiscard]] const std::string& doing() const { return doing_; }

 private:
  void rest();
  void acquire();
  void acquired(Pursuit& pursuit, std::optional<Duration> limit, TimePoint asked_at, Time asked,
                bool cancelled);
  void check_end(const Pursuit& pursuit, std::optional<Duration> limit, TimePoint asked_at,
                 bool cancelled);
  void use();
  void release();
  [[nodiscard]] ClaimPtr make_claim();
  [[nodiscard]] std::optional<Duration> make_limit();
  void later(Duration least, Duration most, std::function<void()> what);

  Client& client_;
  Checks& checks_;
  const Habits& habits_;
  Random random_;
  bool idle_ = true, finishing_ = false, has_long_ttl_ = false;
  std::string doing_;
  std::shared_ptr<Hold> hold_;
};

}  // namespace simulation
