#include "hand.hpp"

#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "interlock/mutex.hpp"
#include "no_memory.hpp"

namespace torture {

using namespace std::chrono_literals;
using interlock::Duration;
using interlock::Lease;
using interlock::Mode;

Hand::Hand(Worker& worker, int number)
    : worker_(worker),
      number_(number),
      random_(std::hash<std::string>()(std::to_string(worker.plan.seed) + ":" + worker.plan.name +
                                       ":" + std::to_string(number))),
      register_(worker.plan.directory / "register"),
      prefix_(worker.plan.prefix) {}

void Hand::run() {
  const Exempt me;
  while (!worker_.ending.stop_requested()) {
    try {
      turn();
    } catch (const std::exception& error) {
      // Each call catches its own; what comes here is a constructor that talks to the store, or a file that this
      // program itself can't open.
      worker_.log.add("note", {{"hand", number_}, {"text", error.what()}});
      sleep(50ms);
    }
    pause(5ms);
  }
}

void Hand::turn() {
  const auto what = below(100);
  const bool detaches = worker_.client.traits().detaches;
  if (what < 3) return break_something();
  if (what < 4) return fork_and_use();
  if (what < 6 && detaches) return adopt();
  if (what < 7) return lead();
  if (what < 9) return claim_task();
  if (what < 10) return fly();
  if (what < 12 && !worker_.plan.command.empty()) return run_command();
  const auto wish = any_wish();
  if (wish.via == "std") return lock_and_unlock(wish);
  if (auto granted = acquire(wish)) hold(wish, std::move(*granted));
}

// Wishes.

Duration Hand::some_ttl() {
  const std::array<Duration, 5> ttls{worker_.plan.shortest_ttl, 500ms, 1s, 3s, 10s};
  const std::array<int, 5> weights{8, 8, 8, 3, 3};
  std::discrete_distribution<std::size_t> which(weights.begin(), weights.end());
  return std::max(ttls.at(which(random_)), worker_.plan.shortest_ttl);
}

Duration Hand::some_limit(Duration at_most) {
  const auto most = chance(0.5) ? std::min<Duration>(at_most, 5ms) : at_most;
  return std::chrono::microseconds(50 + below(static_cast<std::uint64_t>(most / 1us)));
}

std::string Hand::name(const std::string& kind, std::uint64_t count) {
  return prefix_ + kind + std::to_string(below(count));
}

Wish Hand::any_wish() {
  Wish wish;
  wish.options.ttl = some_ttl();
  wish.options.label = "torture";
  wish.options.hierarchy = false;
  wish.options.max_wait = std::nullopt;
  if (chance(0.1)) wish.options.priority = static_cast<std::int32_t>(below(3));
  if (chance(0.08)) wish.options.renew = false;
  const auto front = below(100);
  if (front < 29) {
    wish.parts = {{.resource = name("m", 3)}};
  } else if (front < 51) {
    wish.parts = {
        {.resource = name("rw", 2), .mode = chance(0.6) ? Mode::shared : Mode::exclusive}};
  } else if (front < 59 && worker_.client.traits().slots) {
    wish.parts = {{.resource = prefix_ + "slots",
                   .mode = Mode::slots,
                   .slots = static_cast<std::uint32_t>(1 + below(2)),
                   .capacity = 3}};
  } else if (front < 70) {
    const auto first = below(3);
    wish.parts = {{.resource = prefix_ + "m" + std::to_string(first)},
                  {.resource = prefix_ + "m" + std::to_string((first + 1) % 3)}};
    if (chance(0.3)) wish.parts.push_back({.resource = name("rw", 2), .mode = Mode::shared});
  } else if (front < 78) {
    wish.options.hierarchy = true;
    const std::array<const char*, 5> names{"h", "h/a", "h/b", "h/a/1", "h/a/2"};
    wish.parts = {{.resource = prefix_ + names.at(below(names.size())),
                   .mode = chance(0.3) ? Mode::shared : Mode::exclusive}};
  } else if (front < 82) {
    wish.options.identity = chance(0.5) ? "Ann" : "Bob";
    wish.parts = {{.resource = prefix_ + "identity"}};
  } else {
    wish.options.ttl = worker_.plan.long_ttl;
    wish.parts = {
        {.resource = name(kLongNames, 4), .mode = chance(0.6) ? Mode::shared : Mode::exclusive}};
  }
  choose_way(wish);
  return wish;
}

void Hand::choose_way(Wish& wish) {
  const auto form = below(100);
  if (form < 45) {
    wish.form = "wait";
    // Else a hand may wait for as long as there are lost locks.
    wish.cancel_after = std::chrono::milliseconds(500 + below(10'000));
  } else if (form < 65) {
    wish.form = "once";
  } else if (form < 90) {
    wish.form = "bounded";
    wish.limit = some_limit(3s);
    if (chance(0.2)) wish.cancel_after = some_limit(1s);
  } else {
    wish.form = "tries";
    if (chance(0.2)) wish.cancel_after = some_limit(500ms);
  }
  const auto via = below(100);
  const bool plain = wish.parts.size() == 1 && wish.parts[0].mode == Mode::exclusive;
  if (via < 20) {
    wish.via = "callback";
  } else if (via < 40) {
    wish.via = "coroutine";
  } else if (via < 48 && plain && wish.form != "tries") {
    wish.via = "std";
    wish.cancel_after.reset();
    if (wish.form == "wait") {
      wish.form = "bounded";
      wish.limit = 3s;
    }
  }
}

// Holding.

void Hand::hold(const Wish& wish, Granted granted) {
  auto lease = std::move(granted.lease);
  Grip grip(worker_.log, lease, wish.parts,
            {.op = granted.op,
             .id = granted.op,
             .identity = wish.options.identity,
             .asked = granted.asked},
            something_for_a_loss());
  worker_.watch.add(grip);
  const auto actions = below(4);
  for (std::uint64_t i = 0; i < actions && lease && !worker_.ending.stop_requested(); ++i) {
    do_something(wish, grip, lease);
  }
  // Held for longer than its TTL now and then: renewals have to come in time, or it is lost. And some are held for a while,
  // so that it shows if something ends them that comes late.
  if (chance(wish.options.renew ? 0.02 : 0.3)) {
    sleep(std::min<Duration>(wish.options.ttl * 2, 3s));
  } else if (chance(0.2)) {
    pause(1s);
  }
  worker_.watch.remove(grip);
  if (!grip.parts().empty()) give_back(grip, lease);
}

std::function<void()> Hand::something_for_a_loss() {
  switch (below(4)) {
    case 0:
      return [&worker = worker_] { const std::lock_guard lock(worker.data); };
    case 1:
      return [&worker = worker_, other = name("after-loss", 2)] {
        try {
          interlock::Options options;
          options.ttl = std::max<Duration>(worker.plan.shortest_ttl, 500ms);
          const interlock::Mutex lock(worker.client, other, options);
          auto attempt = lock.try_acquire_for(200ms);
          if (attempt) attempt->release();
        } catch (const interlock::Error&) {
          // The store may be away: the loss came from somewhere.
        }
      };
    case 2:
      // Held up by something else: a disk, a lock of its own.
      return [] { std::this_thread::sleep_for(1s); };
    default:
      return {};
  }
}

std::string Hand::begin(const std::string& verb, const std::string& lease, const Limit& limit) {
  auto op = worker_.next_op();
  Json line{{"op", op}, {"hand", number_}, {"verb", verb}, {"via", "call"}, {"lease", lease}};
  if (limit) line["limit"] = limit->count();
  worker_.log.add("ask", std::move(line));
  return op;
}

void Hand::verb(const std::string& verb, const std::string& lease,
                const std::function<std::string()>& call, const Limit& limit) {
  std::unique_lock data(worker_.data, std::defer_lock);
  if (chance(0.2)) data.lock();
  const auto op = begin(verb, lease, limit);
  try {
    told(op, call());
  } catch (const interlock::Error& error) {
    told(op, error);
  }
}

void Hand::do_something(const Wish& wish, Grip& grip, Lease& lease) {
  const auto& id = grip.id();
  const auto& parts = grip.parts();
  if (parts.empty()) return;
  const auto part = parts[below(parts.size())];
  const auto yes_or_no = [](bool yes) { return std::string(yes ? "yes" : "no"); };
  switch (below(8)) {
    case 0:
    case 1:
      if (part.mode == Mode::exclusive && wish.options.identity.empty())
        update(grip, lease, part.resource);
      break;
    case 2:
      verb("extend", id, [&] { return yes_or_no(lease.extend(some_ttl())); });
      break;
    case 3:
      if (parts.size() > 1) {
        grip.leave(part.resource);
        verb("partial", id,
             [&] { return std::string(to_string(lease.release(std::vector{part.resource}))); });
      } else {
        change_mode(wish, grip, lease);
      }
      break;
    case 4:
    case 5:
      change_mode(wish, grip, lease);
      break;
    case 6:
      if (chance(0.2)) {
        verb("tie", id, [&] { return yes_or_no(lease.tie_to(std::nullopt)); });
      } else if (chance(0.08) && lease.traits().detaches) {
        worker_.watch.remove(grip);
        detach(grip, lease);
      }
      break;
    default:
      pause(20ms);
  }
}

void Hand::change_mode(const Wish& wish, Grip& grip, Lease& lease) {
  if (grip.parts().size() != 1 || !wish.options.identity.empty()) return;
  const auto& id = grip.id();
  const auto part = grip.parts().front();
  const auto yes_or_no = [](bool yes) { return std::string(yes ? "yes" : "no"); };
  const auto asked = now();
  if (part.mode == Mode::exclusive) {
    grip.leave(part.resource);
    verb("downgrade", id, [&] {
      const bool done = lease.downgrade();
      if (done) grip.change(part.resource, Mode::shared, asked);
      return yes_or_no(done);
    });
    if (grip.parts().empty()) give_back(grip, lease);
  } else if (part.mode == Mode::shared) {
    const bool bounded = chance(0.7);
    const auto limit = some_limit(1s);
    const auto upgrade = [&] {
      const bool done = bounded ? lease.try_upgrade_for(limit) : lease.try_upgrade();
      if (done) grip.change(part.resource, Mode::exclusive, asked);
      return yes_or_no(done);
    };
    verb(bounded ? "upgrade_for" : "upgrade", id, upgrade, bounded ? Limit(limit) : Limit());
  }
}

void Hand::update(const Grip& grip, const Lease& lease, const std::string& resource) {
  if (!lease.traits().fences) return;
  const auto fence = lease.fence(resource).value;
  const auto owner = lease.owner().brief();
  const auto bare = register_.read(resource, false, fence, owner).value_or(0);
  const auto fenced = register_.read(resource, true, fence, owner);
  // Some are slow, and may write when their lease is long over: fences are there for these.
  pause(chance(0.03) ? Duration(1s) : Duration(5ms));
  register_.write(resource, false, fence, owner, bare, grip.id());
  if (fenced) register_.write(resource, true, fence, owner, *fenced, grip.id());
}

void Hand::give_back(Grip& grip, Lease& lease) {
  grip.leave();
  const auto& id = grip.id();
  const auto how = below(10);
  if (how < 6) {
    verb("release", id, [&] { return std::string(to_string(lease.release())); });
  } else if (how < 8) {
    struct Done {
      std::mutex mutex;
      std::condition_variable changed;
      bool is = false;
    };
    const auto done = std::make_shared<Done>();
    const auto op = begin("release", id);
    lease.async_release([this, done, op](interlock::LeaseState state) {
      const Exempt me;
      told(op, std::string(to_string(state)));
      const std::lock_guard lock(done->mutex);
      done->is = true;
      done->changed.notify_all();
    });
    std::unique_lock lock(done->mutex);
    done->changed.wait(lock, [&] { return done->is; });
  } else {
    // The destructor, which says nothing.
    grip.forget();
    verb("drop", id, [&] {
      const Lease gone = std::move(lease);
      return std::string("yes");
    });
  }
}

void Hand::detach(Grip& grip, Lease& lease) {
  grip.leave();
  grip.forget();
  verb("detach", grip.id(), [&] {
    const auto token = lease.detach();
    // Whoever renames the file has the token.
    const auto path = worker_.plan.directory / ("token-" + std::to_string(random_()));
    std::ofstream(path.string() + ".new") << token;
    // A process without descriptors can't write it down; then the TTL ends the lease.
    std::error_code ignored;
    std::filesystem::rename(path.string() + ".new", path, ignored);
    return std::string("yes");
  });
}

void Hand::pause(Duration at_most) {
  sleep(std::chrono::microseconds(below(static_cast<std::uint64_t>(at_most / 1us) + 1)));
}

void Hand::sleep(Duration time) const {
  std::mutex mutex;
  std::condition_variable_any ending;
  std::unique_lock lock(mutex);
  ending.wait_for(lock, worker_.ending.get_token(), time, [] { return false; });
}

}  // namespace torture
