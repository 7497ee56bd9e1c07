// What a worker believes about a lease. Each change of it is a line of the history.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "history.hpp"
#include "interlock/lease.hpp"

namespace torture {

/// Of one lease, which outlives it. One thread uses it; `look` may come from another.
class Grip {
 public:
  struct About {
    std::string op;  ///< the call that gave the lease
    std::string id;  ///< of the lease
    std::string identity;
    std::int64_t asked = 0;  ///< when that call was made
    bool adopted = false;
  };
  /// `on_lost` runs in the callback of lost(), as a program's own would.
  Grip(const Log& log, const interlock::Lease& lease, std::vector<interlock::Part> parts,
       About about, std::function<void()> on_lost = {});
  Grip(const Grip&) = delete;
  Grip& operator=(const Grip&) = delete;
  ~Grip();

  [[nodiscard]] const std::string& id() const noexcept { return about_.id; }
  /// Writes down until when the lease is valid, if that has changed.
  void look();
  /// Believes no more to hold this. Before each call that gives something back.
  void leave(const std::string& resource);
  void leave();
  /// Writes down no loss any more: before the lease object goes.
  void forget() { lost_.reset(); }
  /// Holds it in this mode instead: after a change of modes, asked for at `asked`.
  void change(const std::string& resource, interlock::Mode mode, std::int64_t asked);
  [[nodiscard]] const std::vector<interlock::Part>& parts() const noexcept { return parts_; }

 private:
  void write(const interlock::Part& part, std::int64_t asked);

  const Log& log_;
  const interlock::Lease& lease_;
  std::vector<interlock::Part> parts_;
  About about_;
  std::mutex mutex_;
  std::int64_t until_ = 0;
  std::optional<std::stop_callback<std::function<void()>>> lost_;
};

/// Looks at all grips of the process again and again, notices when the process did not get to run, and does what
/// is due: a thread of its own.
class Watch {
 public:
  explicit Watch(const Log& log);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  void add(Grip& grip);
  void remove(Grip& grip);
  /// Writes that `op` is cancelled and stops it, after this time.
  void cancel(const std::string& op, std::stop_source source, interlock::Duration after);
  /// The call is over.
  void forget(const std::string& op);
  /// Cancels all that is still to be cancelled now, and from now on at once.
  void cancel_all();

 private:
  struct Cancellation {
    std::string op;
    std::stop_source source;
    std::int64_t at;
  };
  void run(const std::stop_token& stop);

  const Log& log_;
  std::mutex mutex_;
  std::vector<Grip*> grips_;
  std::list<Cancellation> cancellations_;
  bool all_ = false;
  std::jthread thread_;
};

}  // namespace torture
