#include "crew.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "interlock/interlock.hpp"
#include "meter.hpp"
#include "processes.hpp"
#include "random.hpp"

namespace cli::scale {

using namespace std::chrono_literals;
using interlock::BootClock;
using interlock::TimePoint;

namespace {

constexpr std::size_t kWaits = 8192;   // of one process that are kept
constexpr std::size_t kSamples = 512;  // of one kind of call

/// What one process leaves behind for the one that started it, in memory that they share.
struct Slot {
  char error[512] = {};
  std::uint64_t cycles = 0;
  std::uint64_t asked = 0;
  std::uint64_t woken = 0;
  std::uint64_t waited = 0;  // how many waits, of which the first are kept
  double wait_sum = 0;
  std::array<std::int64_t, kWaits> waits{};
  std::array<std::uint64_t, kSteps> calls{};
  std::array<std::array<std::uint32_t, kSamples>, kSteps> samples{};
};

struct Board {
  std::atomic<int> ready = 0;
  std::atomic<std::int64_t> start = 0;  // 0: not yet
};

template <class Type>
class Shared {
 public:
  explicit Shared(std::size_t count) : count_(count) {
    auto* memory = ::mmap(nullptr, sizeof(Type) * count, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with the processes");
    first_ = static_cast<Type*>(memory);
    std::uninitialized_default_construct_n(first_, count);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(first_, sizeof(Type) * count_); }
  Type& operator[](std::size_t i) { return first_[i]; }

 private:
  std::size_t count_;
  Type* first_ = nullptr;
};

/// The processes; they end with this, whatever happens.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const auto child : alive_) ::kill(child, SIGKILL);
    join();
  }
  template <class Work>
  void start(Slot& slot, const Work& work) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("can't start another process");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      try {
        work();
      } catch (const std::exception& error) {
        std::strncpy(slot.error, error.what(), sizeof(slot.error) - 1);
        ::_exit(1);
      }
      ::_exit(0);
    }
    alive_.push_back(child);
  }
  [[nodiscard]] const std::vector<pid_t>& alive() const { return alive_; }
  /// Whether one ended although nobody asked it to.
  bool one_ended() {
    return std::any_of(alive_.begin(), alive_.end(), [](pid_t child) {
      siginfo_t info{};
      return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             info.si_pid == child;
    });
  }
  void join() {
    for (const auto child : alive_) ::waitpid(child, nullptr, 0);
    alive_.clear();
  }

 private:
  std::vector<pid_t> alive_{};
};

void sleep_until(TimePoint time) {
  for (auto now = BootClock::now(); now < time; now = BootClock::now())
    std::this_thread::sleep_for(time - now);
}

struct Window {
  TimePoint from;
  TimePoint to;
};

Duration warm_up(const Workload& work) { return std::max<Duration>(300ms, work.duration / 5); }

// Other names in each run: whoever ends early may leave some behind until their TTL is over.
std::string new_prefix() {
  return "interlock-simulate:" + interlock::Owner::random().to_string().substr(0, 8) + ":";
}

// What one of the processes does.
void work_in_crew(const std::string& url, const Workload& work, const std::string& prefix, int who,
                  Board& board, Slot& slot) {
  const auto dial = std::make_shared<Dial>();
  const interlock::Client locks(metered(interlock::stores::open(url), dial));
  const interlock::Options options{.ttl = work.ttl};
  Random random(work.seed * 1'000'003 + static_cast<std::uint64_t>(who));
  const Zipf pick(std::max(work.locks, 1), work.skew);
  const auto rest = [&](Duration mean) {
    if (mean.count() <= 0) return;
    const double factor = work.steady ? 1 : random.exponential();
    std::this_thread::sleep_for(
        Duration(static_cast<Duration::rep>(static_cast<double>(mean.count()) * factor)));
  };
  const auto cycle = [&](const std::string& name, bool shared, const auto& granted) {
    auto attempt = locks.acquire(
        {{.resource = name, .mode = shared ? interlock::Mode::shared : interlock::Mode::exclusive}},
        options, interlock::Wait::forever());
    if (!attempt) throw interlock::Error(attempt.error());
    granted();
    rest(work.hold);
    attempt->release();
  };
  cycle(prefix + "ready:" + std::to_string(who), false, [] {});  // it is connected
  ++board.ready;
  while (board.start == 0) std::this_thread::sleep_for(1ms);
  const TimePoint start(Duration(board.start.load()));
  const Window window{start + warm_up(work), start + warm_up(work) + work.duration};
  sleep_until(start);
  dial->watch(window.from, window.to);
  while (BootClock::now() < window.to) {
    rest(work.think);
    const auto name = prefix + std::to_string(work.locks == 0 ? who : pick.pick(random)) +
                      (work.locks == 0 ? ":own" : "");
    const auto asked = BootClock::now();
    cycle(name, work.shared > 0 && random.uniform() < work.shared, [&] {
      const auto now = BootClock::now();
      if (now < window.from || now >= window.to) return;
      if (slot.waited < kWaits) slot.waits.at(slot.waited) = (now - asked).count();
      slot.wait_sum += static_cast<double>((now - asked).count());
      ++slot.waited;
    });
    const auto done = BootClock::now();
    if (done >= window.from && done < window.to) ++slot.cycles;
  }
  const auto readings = dial->take();
  slot.asked = readings.asked;
  slot.woken = readings.woken;
  for (std::size_t i = 0; i < kSteps; ++i) {
    const auto& calls = readings.calls.at(i);
    slot.calls.at(i) = calls.size();
    // Evenly over all of the time.
    const auto count = std::min(kSamples, calls.size());
    for (std::size_t j = 0; j < count; ++j)
      slot.samples.at(i).at(j) = calls[j * calls.size() / count];
  }
}

Run sum_up(Shared<Slot>& slots, int processes, Duration time) {
  Run run;
  run.seconds = std::chrono::duration<double>(time).count();
  std::uint64_t asked = 0;
  std::uint64_t woken = 0;
  std::uint64_t waited = 0;
  double sum = 0;
  std::vector<std::int64_t> waits;
  std::array<std::vector<std::uint32_t>, kSteps> samples{};
  for (int i = 0; i < processes; ++i) {
    const auto& slot = slots[static_cast<std::size_t>(i)];
    run.cycles += slot.cycles;
    asked += slot.asked;
    woken += slot.woken;
    waited += slot.waited;
    sum += slot.wait_sum;
    const auto kept = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(slot.waited, kWaits));
    waits.insert(waits.end(), slot.waits.begin(), slot.waits.begin() + kept);
    for (std::size_t s = 0; s < kSteps; ++s) {
      run.calls.at(s).count += slot.calls.at(s);
      const auto count = std::min<std::uint64_t>(kSamples, slot.calls.at(s));
      samples.at(s).insert(samples.at(s).end(), slot.samples.at(s).begin(),
                           slot.samples.at(s).begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  const auto quantile = [](auto& values, double part) {
    if (values.empty()) return Duration{};
    const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return Duration(values[static_cast<std::size_t>(at)]);
  };
  const auto cycles = static_cast<double>(std::max<std::uint64_t>(run.cycles, 1));
  run.cycles_per_second = static_cast<double>(run.cycles) / run.seconds;
  run.mean_wait = Duration(
      static_cast<Duration::rep>(sum / static_cast<double>(std::max<std::uint64_t>(waited, 1))));
  run.median_wait = quantile(waits, 0.5);
  run.p99_wait = quantile(waits, 0.99);
  run.calls_per_cycle = static_cast<double>(asked) / cycles;
  run.wakes_per_cycle = static_cast<double>(woken) / cycles;
  for (std::size_t s = 0; s < kSteps; ++s) run.calls.at(s).median = quantile(samples.at(s), 0.5);
  return run;
}

void throw_if_one_failed(Shared<Slot>& slots, int processes) {
  for (int i = 0; i < processes; ++i) {
    const auto& error = slots[static_cast<std::size_t>(i)].error;
    if (error[0] != '\0') throw std::runtime_error(error);
  }
}

// One call, and its answer, on this thread.
interlock::Duration ask(interlock::Backend& store,
                        const std::function<void(interlock::Call, interlock::Reply)>& call) {
  const auto clock = interlock::system_clock();
  interlock::Signal signal(*clock);
  std::atomic<bool> answered = false;
  const auto from = BootClock::now();
  const auto until = from + 10s;
  call({.deadline = until, .caller_waits = true}, [&](const interlock::Answer&) {
    answered = true;
    signal.set();
  });
  while (!answered && BootClock::now() < until) store.lend(signal, until);
  if (!answered) throw std::runtime_error("the store did not answer within 10 s");
  return BootClock::now() - from;
}

}  // namespace

int cores_here() {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return 1;
  return std::max(1, CPU_COUNT(&all));
}

Run run_crew(const std::string& url, const Workload& work) {
  Shared<Board> board(1);
  Shared<Slot> slots(static_cast<std::size_t>(work.processes));
  Children children;
  const auto prefix = new_prefix();
  for (int i = 0; i < work.processes; ++i) {
    auto& slot = slots[static_cast<std::size_t>(i)];
    children.start(slot, [&] { work_in_crew(url, work, prefix, i, board[0], slot); });
  }
  for (const auto until = BootClock::now() + 60s; board[0].ready < work.processes;) {
    if (children.one_ended()) {
      throw_if_one_failed(slots, work.processes);
      throw std::runtime_error("a process ended before it began");
    }
    if (BootClock::now() > until)
      throw std::runtime_error("only " + std::to_string(board[0].ready) + " of " +
                               std::to_string(work.processes) +
                               " processes connected within 1 min");
    std::this_thread::sleep_for(2ms);
  }
  const auto servers = servers_of(url);
  const auto start = BootClock::now() + 20ms;
  board[0].start = start.time_since_epoch().count();
  sleep_until(start + warm_up(work));
  struct Used {
    Duration clients, servers, all;
    TimePoint at;
  };
  const auto look = [&] {
    return Used{cpu_of(children.alive()), cpu_of(servers), cpu_of_machine(), BootClock::now()};
  };
  const auto before = look();
  sleep_until(start + warm_up(work) + work.duration);
  const auto after = look();
  children.join();
  throw_if_one_failed(slots, work.processes);
  auto run = sum_up(slots, work.processes, work.duration);
  // Looking at many processes takes a while.
  const auto scale = std::chrono::duration<double>(work.duration) / (after.at - before.at);
  const auto part = [&](Duration time) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * scale));
  };
  run.client_cpu = part(after.clients - before.clients);
  run.server_cpu = part(after.servers - before.servers);
  run.server_seen = !servers.empty();
  run.outside =
      std::chrono::duration<double>(part(after.all - before.all) - run.client_cpu - run.server_cpu)
          .count() /
      run.seconds;
  return run;
}

Run best_run(const std::string& url, const Workload& work) {
  auto best = run_crew(url, work);
  for (int i = 1; i < 3; ++i) {
    auto run = run_crew(url, work);
    if (run.cycles_per_second > best.cycles_per_second) best = run;
  }
  return best;
}

std::vector<Crowded> run_crowded(const std::string& url, const std::vector<int>& sizes) {
  constexpr int kTimes = Crowded::kTimes;
  Shared<Crowded> results(sizes.size());
  Shared<Slot> slots(1);
  Children children;
  children.start(slots[0], [&] {
    const auto store = interlock::stores::open(url);
    store->on_wake([](const interlock::Owner&) {});
    const auto who = std::make_shared<const interlock::Who>(
        interlock::Who{.label = {}, .identity = {}, .host = "here", .pid = ::getpid()});
    const auto middle = [](std::vector<Duration> times) {
      std::sort(times.begin(), times.end());
      return times.empty() ? Duration{} : times[times.size() / 2];
    };
    const auto name = new_prefix() + "crowded";
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const auto new_claim = [&] {
        return interlock::Claim{.owner = interlock::Owner::random(),
                                .parts = {{.resource = name}},
                                .ttl = 30s,
                                .priority = 0,
                                .who = who,
                                .instead_of = {}};
      };
      std::vector<interlock::Claim> claims;
      std::vector<Duration> join, beat, claim, pass, renew;
      const auto acquire = [&](const interlock::Claim& of) {
        return ask(*store, [&](auto call, auto reply) {
          store->acquire(of, true, call, std::move(reply));
        });
      };
      const auto release = [&](const interlock::Claim& of) {
        return ask(*store,
                   [&](auto call, auto reply) { store->release(of, call, std::move(reply)); });
      };
      for (int i = 0; i <= sizes[s] + kTimes; ++i) {
        claims.push_back(new_claim());
        const auto time = acquire(claims.back());
        if (i > sizes[s]) join.push_back(time);
      }
      for (int i = 0; i < kTimes; ++i) {
        beat.push_back(acquire(claims.back()));
        renew.push_back(ask(*store, [&](auto call, auto reply) {
          store->renew(claims.front(), call, std::move(reply));
        }));
      }
      for (std::size_t i = 0; i < kTimes; ++i) {
        pass.push_back(release(claims[i]));
        claim.push_back(acquire(claims[i + 1]));
      }
      for (std::size_t i = claims.size(); i-- > 0;) release(claims[i]);
      results[s] = {sizes[s],      middle(join), middle(beat),
                    middle(claim), middle(pass), middle(renew)};
    }
  });
  children.join();
  throw_if_one_failed(slots, 1);
  std::vector<Crowded> all;
  for (std::size_t s = 0; s < sizes.size(); ++s) all.push_back(results[s]);
  return all;
}

}  // namespace cli::scale
