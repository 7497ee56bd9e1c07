// interlock bench: how fast is this store, from here?
#include <poll.h>

#include <atomic>
#include <cmath>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "command.hpp"
#include "histogram.hpp"
#include "interlock/duration.hpp"
#include "interlock/mutex.hpp"
#include "progress.hpp"
#include "show.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using namespace std::chrono_literals;
using interlock::BootClock;
using interlock::Client;
using interlock::Duration;
using interlock::Mutex;

const interlock::Options kOptions{.ttl = 30s, .label = "interlock bench"};

/// Threads that run until their time is over. What one of them throws ends all of them.
class Threads {
 public:
  /// `work` gets the number of the thread, and ends soon after its token was stopped.
  void start(std::uint32_t count, const std::function<void(std::uint32_t, std::stop_token)>& work) {
    for (std::uint32_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, i, work] {
        try {
          work(i, stop_.get_token());
        } catch (const interlock::Error& error) {
          // Whoever waits when the time is over is told that it is.
          const bool over = error.errc() == interlock::Errc::cancelled && stop_.stop_requested();
          const std::lock_guard lock(mutex_);
          if (!over && !error_) error_ = error;
          stop_.request_stop();
        }
      });
    }
  }
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }
  /// Why they ended too early, if they did.
  std::optional<interlock::Error> end() {
    stop_.request_stop();
    threads_.clear();
    return error_;
  }

 private:
  std::stop_source stop_;
  std::mutex mutex_;
  std::optional<interlock::Error> error_;
  std::vector<std::jthread> threads_;
};

/// Two pass one lock to each other. How long is it from the one's release to the other's grant?
class Handoff {
 public:
  explicit Handoff(std::array<Mutex, 2> mutexes) : mutexes_(std::move(mutexes)) {}

  void play(std::uint32_t me, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto asked = BootClock::now();
      asking_.at(me) = true;
      auto lease = mutexes_.at(me).acquire(stop);
      const auto granted = BootClock::now();
      asking_.at(me) = false;
      took(me, asked, granted);
      while (!asking_.at(1 - me) && !stop.stop_requested()) std::this_thread::yield();
      std::this_thread::sleep_for(1ms);  // it has asked; now it waits
      releases(me);
      lease.release();
    }
  }
  [[nodiscard]] const Histogram& taken() const { return taken_; }

 private:
  void took(std::uint32_t me, interlock::TimePoint asked, interlock::TimePoint granted) {
    const std::lock_guard lock(mutex_);
    if (released_by_ != me && released_at_ > asked) taken_.add(granted - released_at_);
  }
  void releases(std::uint32_t me) {
    const std::lock_guard lock(mutex_);
    released_by_ = me;
    released_at_ = BootClock::now();
  }

  std::array<Mutex, 2> mutexes_;
  std::array<std::atomic<bool>, 2> asking_{};
  std::mutex mutex_;  // the lock that is measured may be a file: no compiler knows that it excludes
  std::uint32_t released_by_ = 2;
  interlock::TimePoint released_at_{};
  Histogram taken_;
};

struct Results {
  Histogram acquire{};
  Histogram release{};
  Histogram cycle{};
  Histogram busy{};  ///< a cycle, while all threads are at it
  double a_second = 0;
  Histogram handoff{};
};

class Bench {
 public:
  Bench(const Common& common, Duration duration, std::uint32_t threads)
      : client_(open_any_store(common)),
        // A store in memory is one client's only.
        second_(client_.traits().across_processes ? open_any_store(common) : client_),
        phase_(duration / 3),
        threads_(threads) {
    std::random_device random;
    std::array<char, 64> text{};
    (void)std::snprintf(text.data(), text.size(), "interlock-bench:%08x", random());
    prefix_ = text.data();
  }

  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] const std::string& store() const { return client_.traits().where; }
  [[nodiscard]] const Results& results() const { return results_; }
  /// The signal that ended it early, if one did.
  [[nodiscard]] std::optional<int> signal() const { return signal_; }
  /// The same for an error.
  [[nodiscard]] const std::optional<interlock::Error>& error() const { return error_; }
  [[nodiscard]] bool partial() const { return signal_ || error_; }

  /// Throws Error if the store can't be reached.
  void check() const { (void)client_.inspect({.resources = {prefix_}, .prefix = {}}); }

  void run() {
    cycle();
    if (!partial()) throughput();
    if (!partial()) handoff();
  }

 private:
  // Until the time is over, or a signal asks to end.
  void wait(Threads& threads, int number, const char* what) {
    const auto began = BootClock::now();
    while (!threads.stopped() && BootClock::now() < began + phase_ && !signal_) {
      pollfd ready{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      ::poll(&ready, 1, 20);
      while (const auto signal = signals_.next()) {
        if (asks_to_end(*signal)) signal_ = signal;
      }
      const double part = std::chrono::duration<double>(BootClock::now() - began) / phase_;
      progress_.show((number + std::min(part, 1.0)) / 3, what);
    }
    error_ = threads.end();
    // Whoever still hopes for an answer when the time is over is cancelled, and tells nothing.
    try {
      if (!partial()) check();
    } catch (const interlock::Error& error) {
      error_ = error;
    }
    if (partial() || number == 2) progress_.clear();
  }

  void cycle() {
    const Mutex mutex(client_, prefix_ + ":cycle", kOptions);
    Threads threads;
    threads.start(1, [&](std::uint32_t /*number*/, const std::stop_token& stop) {
      mutex.acquire(stop).release();  // connects, and whatever else is done once
      while (!stop.stop_requested()) {
        const auto asked = BootClock::now();
        auto lease = mutex.acquire(stop);
        const auto granted = BootClock::now();
        lease.release();
        const auto released = BootClock::now();
        results_.acquire.add(granted - asked);
        results_.release.add(released - granted);
        results_.cycle.add(released - asked);
      }
    });
    wait(threads, 0, "one after the other");
  }

  void throughput() {
    std::vector<Histogram> each(threads_);
    Threads threads;
    const auto began = BootClock::now();
    threads.start(threads_, [&](std::uint32_t number, const std::stop_token& stop) {
      const Mutex mutex(client_, prefix_ + ":" + std::to_string(number), kOptions);
      while (!stop.stop_requested()) {
        const auto asked = BootClock::now();
        mutex.acquire(stop).release();
        each[number].add(BootClock::now() - asked);
      }
    });
    wait(threads, 1, "side by side");
    const double seconds = std::chrono::duration<double>(BootClock::now() - began).count();
    for (const auto& one : each) results_.busy.merge(one);
    results_.a_second = static_cast<double>(results_.busy.count()) / seconds;
  }

  void handoff() {
    const auto name = prefix_ + ":handoff";
    Handoff pair({Mutex(client_, name, kOptions), Mutex(second_, name, kOptions)});
    Threads threads;
    threads.start(
        2, [&](std::uint32_t number, const std::stop_token& stop) { pair.play(number, stop); });
    wait(threads, 2, "from one to the other");
    results_.handoff = pair.taken();
  }

  Signals signals_;  // before the first thread
  Client client_;
  Client second_;
  Duration phase_;
  std::uint32_t threads_;
  std::string prefix_;
  Progress progress_;
  std::optional<int> signal_;
  std::optional<interlock::Error> error_;
  Results results_;
};

void print(const Results& results, std::uint32_t threads, bool partial) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&rows](const std::string& name, const std::vector<std::string>& texts) {
    rows.emplace_back(1, name).insert(rows.back().end(), texts.begin(), texts.end());
  };
  add("", cell_titles());
  add("acquire", cells(results.acquire));
  add("release", cells(results.release));
  add("both (a cycle)", cells(results.cycle));
  add("cycle, " + std::to_string(threads) + " threads", cells(results.busy));
  add("handoff", cells(results.handoff));
  for (const auto& line : align(rows)) std::cout << line << '\n';
  if (results.busy.count() > 0) {
    std::cout << "\nThroughput: " << for_people(results.a_second) << " cycles a second, " << threads
              << " threads with a lock each\n";
  }
  const auto picture = [](const char* title, const Histogram& histogram) {
    if (histogram.count() == 0) return;
    std::cout << '\n' << title << ":\n";
    for (const auto& line : histogram.picture()) std::cout << line << '\n';
  };
  picture("A cycle, one after the other", results.cycle);
  picture("Handoff, from a release to the grant of the one who waits", results.handoff);
  if (partial) std::cout << "\nPartial: it ended before all was measured.\n";
}

nlohmann::ordered_json to_json(const Results& results, std::uint32_t threads,
                               const std::string& store, bool partial) {
  nlohmann::ordered_json throughput;  // null
  if (results.busy.count() > 0) {
    throughput = {{"threads", threads},
                  {"cycles_per_second", std::round(results.a_second * 10) / 10},
                  {"cycle", to_json(results.busy)}};
  }
  return {{"store", store},
          {"partial", partial},
          {"acquire", to_json(results.acquire)},
          {"release", to_json(results.release)},
          {"cycle", to_json(results.cycle)},
          {"throughput", std::move(throughput)},
          {"handoff", to_json(results.handoff)}};
}

}  // namespace

int bench(const Arguments& arguments) {
  Duration duration = 20s;
  std::uint32_t threads = 64;
  bool json = false;
  Parser parser(
      "bench [OPTIONS]",
      "Measures the store from this machine: the time to take a lock, locks per second, and the\n"
      "time from a release to the grant of the next waiter. Uses locks of its own\n"
      "(interlock-bench:…), and leaves none of them behind.",
      "  interlock bench --url redis://localhost\n  interlock bench --duration 1m --json\n");
  add_work_time(parser, "How long all measurements take (default: 20s)", duration);
  parser.add_option("--threads", threads, "Threads at once, for the throughput (default: 64)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
  parser.add_json(json);
  parser.read(arguments);
  Bench bench(parser.common, duration, threads);
  if (!json) {
    std::cout << "bench at " << printable(bench.store()) << ", "
              << interlock::format_duration(duration) << '\n'
              << set_by(arguments) << "Names: " << bench.prefix() << ":…\n\n"
              << std::flush;
  }
  bench.check();
  bench.run();
  const auto& error = bench.error();
  if (error && bench.results().cycle.count() == 0) throw interlock::Error(*error);
  if (json) {
    print_json(to_json(bench.results(), threads, bench.store(), bench.partial()));
  } else {
    print(bench.results(), threads, bench.partial());
  }
  std::cout << std::flush;
  if (error) throw interlock::Error(*error);
  return bench.signal() ? by_signal(*bench.signal()) : kOk;
}

}  // namespace cli
