// time, speed, stress and escalation: one crew, four things to do.
#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <random>
#include <thread>

#include "interlock/duration.hpp"
#include "progress.hpp"
#include "show.hpp"
#include "signals.hpp"
#include "simulate.hpp"
#include "simulate/crew.hpp"
#include "simulate/report.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using namespace simulation;
using namespace std::chrono_literals;
using interlock::BootClock;
using interlock::Duration;

struct About {
  Plan plan;  ///< what it does unless told otherwise
  const char* description;
  const char* examples;
};

struct Wanted {
  Plan plan;
  std::optional<std::uint32_t> threads, processes;
  std::optional<std::uint64_t> seed;
  std::string svg;
  bool json = false;
  std::string member;  ///< set in the processes of a crew: memory:process:life
};

void add_options(Parser& parser, Wanted& wanted) {
  const auto& plan = wanted.plan;
  const auto by_default = [](std::uint32_t number) {
    return " (default: " + std::to_string(number) + ")";
  };
  const auto usually = [](const char* what, Duration value) {
    return std::string(what) + " (default: " + interlock::format_duration(value) + ")";
  };
  parser
      .add_option("--threads", wanted.threads, "Threads of each process" + by_default(plan.threads))
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
  parser
      .add_option("--processes", wanted.processes,
                  "Processes, each with its own connection" + by_default(plan.processes) +
                      (plan.processes > 1 ? "; 1 if the store is in memory" : ""))
      ->type_name("N")
      ->check(CLI::Range(1U, 256U));
  parser
      .add_option("--resources", wanted.plan.resources,
                  (plan.kind == Kind::escalation ? "The table and its rows" : "To choose from") +
                      by_default(plan.resources))
      ->type_name("N")
      ->check(CLI::Range(plan.kind == Kind::escalation ? 2U : 1U, 10'000U));
  add_work_time(parser, usually("How long", plan.duration), wanted.plan.duration);
  add_duration(parser, "--hold", usually("A lock is held for up to so long", plan.hold),
               [&wanted](auto value) { wanted.plan.hold = checked(value); });
  add_duration(parser, "--ttl", usually("How long a lock outlives a killed holder", plan.ttl),
               [&wanted](auto value) {
                 interlock::check_ttl(value, "");
                 wanted.plan.ttl = value;
               });
  add_seed(parser, "What is left to chance comes from it (default: any)",
           [&wanted](auto value) { wanted.seed = value; });
  parser.add_option("--svg", wanted.svg, "Draw who waited and held when")->type_name("FILE");
  parser.add_flag("--no-lock", wanted.plan.no_lock, "Without locks, to see that the checks fail");
  parser.add_json(wanted.json);
  parser.add_option("--member", wanted.member)->group("");
}

// Hundreds of processes, on a machine that is busy.
constexpr Duration kLongestStart = 120s;
// All who wait or hold are told to stop; what is left is a call to the store.
constexpr Duration kLongestEnd = 20s;

/// In a process of a crew.
int be_member(const Common& common, const std::string& member) {
  std::array<std::uint32_t, 3> numbers{};
  const char* at = member.data();
  const char* const end = at + member.size();
  for (auto& number : numbers) {
    at = std::from_chars(at, end, number).ptr;
    if (at != end) ++at;
  }
  Arena arena{Descriptor(static_cast<int>(numbers[0]))};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto until = BootClock::now() + 10s;;) {
    try {
      work(arena, numbers[1], numbers[2], open_any_store(common));
      return kOk;
    } catch (const interlock::Error& error) {
      if (error.retryable() && BootClock::now() < until) {
        std::this_thread::sleep_for(100ms);
        continue;
      }
      arena.fail(error);
      return kOk;
    }
  }
}

/// Kills and stops processes at times that come from the seed.
class Mischief {
 public:
  Mischief(Crew& crew, const Plan& plan) : crew_(crew), plan_(plan), random_(plan.seed) { later(); }

  void act() {
    const auto now = BootClock::now();
    if (crew_.stopped() && now >= go_on_) crew_.go_on();
    if (now < next_) return;
    later();
    const auto process = static_cast<std::uint32_t>(random_() % plan_.processes);
    const bool kills = random_() % 10 < 6;
    if (kills) {
      crew_.kill(process);
    } else if (!crew_.stopped()) {
      crew_.stop(process);
      // So long that its leases have ended when it goes on.
      go_on_ = now + plan_.ttl + up_to(plan_.ttl / 2);
    }
  }

 private:
  Duration up_to(Duration most) {
    return Duration(
        static_cast<std::int64_t>(random_() % (static_cast<std::uint64_t>(most.count()) + 1)));
  }
  // What a killed one held may be kept until its TTL ends: there has to be time to go on after it.
  void later() {
    next_ = BootClock::now() + 200ms + up_to(std::max<Duration>(800ms, plan_.ttl * 2));
  }

  Crew& crew_;
  const Plan& plan_;
  std::mt19937_64 random_;
  interlock::TimePoint next_;
  interlock::TimePoint go_on_;
};

class Simulation {
 public:
  Simulation(const Wanted& wanted, const Common& common, const Arguments& arguments)
      : wanted_(wanted),
        set_by_(set_by(arguments)),
        client_(open_any_store(common)),
        store_(client_.traits().where),
        url_(shown_url(common, store_)),
        arena_(check(wanted.plan)),
        crew_(arena_, arguments.before) {}
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() { arena_.shared().stop = true; }  // whatever happened

  int run() {
    const auto& plan = arena_.plan();
    if (!wanted_.json) {
      std::cout << printable(title(plan, store_)) << '\n'
                << set_by_ << "Names: " << arena_.name(0)
                << (plan.resources > 1 ? " and so on" : "") << "\n\n"
                << std::flush;
    }
    try {
      work_and_check();
    } catch (const std::exception&) {
      tell_partial();
      throw;
    }
    return tell();
  }

 private:
  [[nodiscard]] const Plan& check(const Plan& plan) const {
    if (plan.processes > 1 && !client_.traits().across_processes) {
      throw UsageError("the store " + store_ +
                       " exists in one process only; simulate with --processes 1");
    }
    if (plan.workers() > 4096) {
      throw UsageError("more than 4096 workers; give fewer --threads or --processes");
    }
    return plan;
  }

  void work_and_check() {
    start();
    watch();
    end();
    if (arena_.shared().has_error) {
      throw Failure(exit_code(arena_.shared().errc), arena_.shared().error.data());
    }
    if (!signal_ && arena_.watch().in_order()) look_for_leftovers();
  }

  bool asked_to_end() {
    while (const auto signal = signals_.next()) {
      if (asks_to_end(*signal)) signal_ = signal;
    }
    return signal_.has_value();
  }

  void start() {
    auto& shared = arena_.shared();
    const auto processes = arena_.plan().processes;
    if (processes == 1) {
      here_ = std::jthread([this] { work(arena_, 0, 0, client_); });
    } else {
      for (std::uint32_t i = 0; i < processes; ++i) crew_.start(i);
    }
    const auto until = BootClock::now() + kLongestStart;
    while (shared.ready < processes && !shared.stop && !asked_to_end()) {
      if (processes > 1) crew_.running();
      if (BootClock::now() > until) {
        throw Failure(kSoftware, "a process of the simulation is not ready after " +
                                     interlock::format_duration(kLongestStart) +
                                     "; try with fewer --processes");
      }
      std::this_thread::sleep_for(1ms);
    }
    shared.started = BootClock::now().time_since_epoch().count();
  }

  void watch() {
    auto& shared = arena_.shared();
    const auto& plan = arena_.plan();
    const bool mischievous = plan.kind == Kind::stress && plan.processes > 1;
    Mischief mischief(crew_, plan);
    Progress progress;
    while (!shared.stop && arena_.now() < plan.duration && arena_.watch().in_order()) {
      pollfd ready{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      ::poll(&ready, 1, 5);
      if (asked_to_end()) break;
      if (mischievous) mischief.act();
      if (plan.processes > 1) crew_.running();
      progress.show(std::chrono::duration<double>(arena_.now()) / plan.duration,
                    std::string("simulate ") + to_string(plan.kind));
    }
  }

  void end() {
    arena_.shared().stop = true;
    took_ = arena_.now();
    crew_.go_on_all();
    const auto until = BootClock::now() + kLongestEnd;
    const auto before = std::exchange(signal_, std::nullopt);  // a second one ends it at once
    while (crew_.running() > 0) {
      if (asked_to_end()) {
        throw Failure(by_signal(*signal_),
                      "ended before all processes had given back what they held");
      }
      if (BootClock::now() > until) {
        throw Failure(kSoftware, "a process of the simulation does not end; it was killed");
      }
      std::this_thread::sleep_for(5ms);
    }
    signal_ = before;
    if (here_.joinable()) here_.join();
  }

  // What a killed holder had ends with its TTL, and with some patience.
  void look_for_leftovers() {
    const auto until = BootClock::now() + arena_.plan().ttl + 30s;
    const interlock::Query query{.resources = arena_.names(), .prefix = {}};
    for (auto left = client_.inspect(query).resources; !left.empty();
         left = client_.inspect(query).resources) {
      if (BootClock::now() > until) {
        return arena_.watch().violated(left.front().resource + " is still " +
                                       (left.front().holders.empty() ? "waited for" : "held") +
                                       ", but nobody is there");
      }
      std::this_thread::sleep_for(20ms);
    }
  }

  /// What was found out comes before a picture that can't be written.
  int tell() {
    const Summary summary(arena_, took_);
    return draw_after(tell(summary));
  }

  /// What there is so far; what ended it is told next.
  void tell_partial() {
    if (took_ == Duration{}) took_ = arena_.now();
    const Summary summary(arena_, took_);
    if (summary.all_waits.count() == 0) return;
    tell_figures(summary, true);
    draw_after(kFailed);
  }

  int draw_after(int status) {
    if (wanted_.svg.empty()) return status;
    std::cout << std::flush;
    try {
      draw(arena_, took_, store_, wanted_.svg);
    } catch (const Failure& failure) {
      complain(failure.what());
      return status == kOk ? failure.status : status;
    }
    return status;
  }

  void tell_figures(const Summary& summary, bool partial) {
    if (wanted_.json) {
      print_json(to_json(arena_, summary, store_, url_, partial));
    } else {
      print(arena_, summary);
      if (partial) std::cout << "Partial: it did not get to its end.\n";
    }
    std::cout << std::flush;
    if (arena_.watch().in_order()) return;
    for (const auto& violation : arena_.watch().violations()) complain("FAILED: " + violation);
    complain("to repeat it: " + command(arena_.plan(), url_));
  }

  int tell(const Summary& summary) {
    tell_figures(summary, signal_.has_value());
    if (!arena_.watch().in_order()) return kFailed;
    if (signal_) return by_signal(*signal_);
    if (summary.all_waits.count() == 0) {
      throw Failure(kUnavailable,
                    "not one lock was granted by " + store_ + " in " +
                        interlock::format_duration(arena_.plan().duration) +
                        "; give more --duration, or look at interlock config --check");
    }
    if (!wanted_.json) std::cout << "No two were where only one may be.\n";
    return kOk;
  }

  const Wanted& wanted_;
  std::string set_by_;
  Signals signals_;  // before the first thread
  interlock::Client client_;
  std::string store_;
  std::string url_;
  Arena arena_;
  Crew crew_;
  std::jthread here_;
  Duration took_{};
  std::optional<int> signal_;
};

int simulate(const Arguments& arguments, const About& program) {
  Wanted wanted;
  wanted.plan = program.plan;
  Parser parser(std::string("simulate ") + to_string(program.plan.kind) + " [OPTIONS]",
                program.description, program.examples);
  add_options(parser, wanted);
  parser.read(arguments);
  if (!wanted.member.empty()) return be_member(parser.common, wanted.member);

  auto& plan = wanted.plan;
  plan.seed = wanted.seed ? *wanted.seed : std::random_device{}();
  plan.threads = wanted.threads.value_or(plan.threads);
  if (wanted.processes) {
    plan.processes = *wanted.processes;
  } else if (store_url(parser.common).starts_with("memory:")) {
    plan.processes = 1;
  }
  if (plan.no_lock && plan.workers() == 1)
    throw UsageError(
        "--no-lock: a single worker can't overlap with another one; give more --threads");
  if (!wanted.svg.empty()) check_picture(wanted.svg);
  return Simulation(wanted, parser.common, arguments).run();
}

}  // namespace

int simulate_time(const Arguments& arguments) {
  return simulate(
      arguments,
      {.plan = {.kind = Kind::time, .resources = 8, .duration = 5s, .ttl = 30s, .hold = 0s},
       .description =
           "Measures how long it takes to get a lock that nobody else wants, and to give it "
           "back:\nexclusive, shared, and several at once.",
       .examples = "  interlock simulate time --url redis://localhost\n"});
}

int simulate_speed(const Arguments& arguments) {
  return simulate(
      arguments,
      {.plan = {.kind = Kind::speed,
                .threads = 4,
                .processes = 2,
                .resources = 4,
                .duration = 10s,
                .ttl = 30s,
                .hold = 1ms},
       .description =
           "Many want the same few locks. Tells how many of them were granted, who waited how "
           "long,\nand how fair that was.",
       .examples = "  interlock simulate speed --processes 4 --threads 8 --resources 2\n"
                   "  interlock simulate speed --svg speed.svg --seed 7\n"});
}

int simulate_stress(const Arguments& arguments) {
  return simulate(arguments,
                  {.plan = {.kind = Kind::stress,
                            .threads = 4,
                            .processes = 4,
                            .resources = 6,
                            .duration = 15s,
                            .ttl = 1s,
                            .hold = 2ms},
                   .description = "Everything at once: several locks, partial releases, cancelled "
                                  "waits, broken locks, lost\n"
                                  "leases, and processes that are killed or stopped. Exit status 1 "
                                  "if two were where only one\n"
                                  "may be; the seed is told, to repeat it.",
                   .examples = "  interlock simulate stress --duration 1m --svg stress.svg\n"
                               "  interlock simulate stress --no-lock      the checks fail\n"});
}

int simulate_escalation(const Arguments& arguments) {
  return simulate(
      arguments,
      {.plan = {.kind = Kind::escalation,
                .threads = 4,
                .processes = 2,
                .resources = 9,
                .duration = 10s,
                .ttl = 30s,
                .hold = 2ms},
       .description =
           "Workers lock rows (table/1, table/2, …), and one of them the whole table, which "
           "excludes\nall rows though none of them asks for it. Exit status 1 if a row was "
           "held together\nwith the table.",
       .examples = "  interlock simulate escalation --svg escalation.svg\n"});
}

}  // namespace cli
