// A backend without a client: one call, one answer, no renewal, no heartbeat. What the core never
// does can be done here: fall silent, ask as somebody else, look at a single wake.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/suite.hpp"
#include "interlock/backend.hpp"

namespace interlock::conformance {

/// A claim of an owner of its own, of no process, for half a minute.
inline Claim claim_of(std::vector<Part> parts, Duration ttl = 30s, std::string identity = "") {
  normalize(parts, false);
  return {.owner = Owner::random(),
          .parts = std::move(parts),
          .ttl = ttl,
          .priority = 0,
          .who = std::make_shared<Who>(
              Who{.label = "", .identity = std::move(identity), .host = "", .pid = 0}),
          .instead_of = {}};
}
inline Claim claim_of(const std::string& resource, Duration ttl = 30s) {
  return claim_of({exclusive(resource)}, ttl);
}
/// The same claim, as a process on that host makes it: Redis has a short way for those.
inline Claim from_host(Claim claim, std::string host) {
  auto who = *claim.who;
  who.host = std::move(host);
  claim.who = std::make_shared<Who>(std::move(who));
  return claim;
}
/// A new owner that takes over what the other one holds.
inline Claim instead_of(const Claim& other, std::vector<Part> parts) {
  auto claim = claim_of(std::move(parts));
  claim.instead_of = other.owner;
  return claim;
}
/// The same owner, with other parts.
inline Claim changed(Claim claim, std::vector<Part> parts) {
  claim.parts = std::move(parts);
  return claim;
}

class Seam {
 public:
  explicit Seam(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {
    backend_->on_wake([this](const Owner& owner) {
      const std::lock_guard lock(mutex_);
      wakes_.push_back(owner);
    });
  }
  Seam(const Seam&) = delete;
  Seam& operator=(const Seam&) = delete;
  ~Seam() { backend_.reset(); }  // before what its wakes write to

  [[nodiscard]] const Traits& traits() const { return backend_->traits(); }

  Answer acquire(const Claim& claim) {
    return ask<Answer>([&](Call call, auto reply) { backend_->acquire(claim, true, call, reply); });
  }
  Answer try_acquire(const Claim& claim) {
    return ask<Answer>(
        [&](Call call, auto reply) { backend_->acquire(claim, false, call, reply); });
  }
  Answer renew(const Claim& claim) {
    return ask<Answer>([&](Call call, auto reply) { backend_->renew(claim, call, reply); });
  }
  Answer release(const Claim& claim) {
    return ask<Answer>([&](Call call, auto reply) { backend_->release(claim, call, reply); });
  }
  Snapshot inspect(const Query& query = {}) {
    return ask<Snapshot>([&](Call call, auto report) { backend_->inspect(query, call, report); });
  }

  /// Who was woken so far, in order.
  std::vector<Owner> wakes() {
    const std::lock_guard lock(mutex_);
    return wakes_;
  }
  bool woken(const Owner& owner) {
    const auto all = wakes();
    return std::find(all.begin(), all.end(), owner) != all.end();
  }
  /// The first to wait may be told to look again, once the store can tell it anything. Gets over it.
  void begin_listening(const std::string& resource = "r") {
    const auto holder = claim_of(resource);
    const auto waiter = claim_of(resource);
    EXPECT_EQ(acquire(holder).verdict, Verdict::granted);
    EXPECT_EQ(acquire(waiter).verdict, Verdict::queued);
    EXPECT_TRUE(testing_support::eventually([&] {
      release(holder);
      idle(1ms);
      return woken(waiter.owner);
    }));
    release(waiter);
    const std::lock_guard lock(mutex_);
    wakes_.clear();
  }
  /// Gives a store that needs a thread of ours the time to tell what it has to tell.
  void idle(Duration time) {
    Signal never(*system_clock());
    const auto until = BootClock::now() + time;
    while (BootClock::now() < until) backend_->lend(never, until);
  }

 private:
  // Shared with the reply: an answer may come after the caller gave up.
  template <class T>
  struct Slot {
    std::mutex mutex;
    std::optional<T> value;
    Signal there{*system_clock()};
  };

  template <class T, class Make>
  T ask(Make make) {
    const auto slot = std::make_shared<Slot<T>>();
    const Call call{.deadline = BootClock::now() + kPatience, .caller_waits = true};
    make(call, [slot](T value) {
      {
        const std::lock_guard lock(slot->mutex);
        EXPECT_FALSE(slot->value.has_value()) << "answered twice";
        slot->value = std::move(value);
      }
      slot->there.set();
    });
    for (;;) {
      {
        const std::lock_guard lock(slot->mutex);
        if (slot->value) return *slot->value;
      }
      if (BootClock::now() > call.deadline) {
        ADD_FAILURE() << "the store never answered";
        return {};
      }
      backend_->lend(slot->there, call.deadline);
    }
  }

  std::mutex mutex_;
  std::vector<Owner> wakes_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace interlock::conformance

namespace interlock {
/// For readable failures.
inline std::ostream& operator<<(std::ostream& out, Verdict verdict) {
  switch (verdict) {
    case Verdict::granted:
      return out << "granted";
    case Verdict::queued:
      return out << "queued";
    case Verdict::busy:
      return out << "busy";
    case Verdict::lost:
      return out << "lost";
    case Verdict::unknown:
      return out << "unknown";
  }
  return out;
}
}  // namespace interlock
