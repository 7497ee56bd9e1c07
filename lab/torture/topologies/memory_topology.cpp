// Locks in the memory of the workers' process; and the same with chaos around it.
#include <sys/mman.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "conformance/temporary_directory.hpp"
#include "interlock/stores.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/member.hpp"

namespace torture {
namespace {

constexpr auto kMemory = "memory:torture";

// On a busy machine a thread waits for a processor for longer than a shorter lease lasts, and nobody else notices.
Promise in_one_process() {
  return {.shortest_ttl = std::chrono::milliseconds(250),
          .across_processes = false,
          .timeout = false,
          .survives_no_memory = true};
}

class MemoryTopology final : public Topology {
 public:
  [[nodiscard]] std::string url() const override { return kMemory; }
  [[nodiscard]] Promise promise() const override { return in_one_process(); }
  std::vector<Fault> faults() override { return {busy_processors()}; }
};

/// What goes wrong at the moment: a file that the director writes and the workers' process reads.
class Knobs {
 public:
  struct Settings {
    std::atomic<std::uint64_t> changes;
    std::atomic<std::uint64_t> seed;
    std::atomic<double> fail, drop_reply, duplicate, drop_wake, delay;
  };

  explicit Knobs(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Settings)) != 0)
      throw std::runtime_error("can't make " + path);
    auto* where = ::mmap(nullptr, sizeof(Settings), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (where == MAP_FAILED) throw std::runtime_error("can't map " + path);
    settings_ = static_cast<Settings*>(where);
  }
  Knobs(const Knobs&) = delete;
  Knobs& operator=(const Knobs&) = delete;
  ~Knobs() { ::munmap(settings_, sizeof(Settings)); }

  Settings* operator->() const noexcept { return settings_; }

 private:
  Settings* settings_;
};

/// Chaos around memory, which follows the knobs.
class Steered final : public interlock::Backend {
 public:
  explicit Steered(const std::string& knobs)
      : knobs_(knobs), chaos_(interlock::chaos(interlock::stores::open(kMemory))) {}

  [[nodiscard]] const interlock::Traits& traits() const noexcept override {
    return chaos_->traits();
  }
  void acquire(const interlock::Claim& claim, bool queue, interlock::Call call,
               interlock::Reply reply) override {
    follow();
    chaos_->acquire(claim, queue, call, std::move(reply));
  }
  void renew(const interlock::Claim& claim, interlock::Call call, interlock::Reply reply) override {
    follow();
    chaos_->renew(claim, call, std::move(reply));
  }
  void release(const interlock::Claim& claim, interlock::Call call,
               interlock::Reply reply) override {
    follow();
    chaos_->release(claim, call, std::move(reply));
  }
  void inspect(const interlock::Query& query, interlock::Call call,
               interlock::Report report) override {
    chaos_->inspect(query, call, std::move(report));
  }
  void on_wake(interlock::WakeSink sink) override { chaos_->on_wake(std::move(sink)); }
  void lend(interlock::Signal& signal, interlock::TimePoint until) override {
    chaos_->lend(signal, until);
  }

 private:
  void follow() {
    if (seen_ == knobs_->changes) return;
    // Two threads that follow two changes must not end with the settings of the first one.
    const std::lock_guard lock(mutex_);
    const auto changes = knobs_->changes.load();
    if (seen_.exchange(changes) == changes) return;
    chaos_->set({.seed = knobs_->seed + changes,
                 .fail = probability(knobs_->fail),
                 .drop_reply = probability(knobs_->drop_reply),
                 .duplicate = probability(knobs_->duplicate),
                 .drop_wake = probability(knobs_->drop_wake),
                 .delay = probability(knobs_->delay)});
  }

  // Faults that overlap are added up.
  static double probability(double sum) { return std::clamp(sum, 0.0, 1.0); }

  Knobs knobs_;
  std::unique_ptr<interlock::Chaos> chaos_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> seen_ = 0;
};

class ChaosTopology final : public Topology {
 public:
  [[nodiscard]] std::string url() const override {
    return kChaosScheme + (directory_.path() / "knobs").string();
  }
  [[nodiscard]] Promise promise() const override {
    auto promise = in_one_process();
    // Each lost wake-up costs a heartbeat of the memory store.
    promise.granted_within = [](interlock::Duration ttl) {
      return 2 * ttl + std::chrono::seconds(11);
    };
    return promise;
  }
  std::vector<Fault> faults() override {
    using Settings = Knobs::Settings;
    return {
        turned("calls fail", &Settings::fail, 0.2),
        turned("no call arrives", &Settings::fail, 1.0),
        turned("answers lost", &Settings::drop_reply, 0.2),
        turned("calls arrive twice", &Settings::duplicate, 0.5),
        turned("wake-ups lost", &Settings::drop_wake, 0.5),
        turned("calls late", &Settings::delay, 0.5),
        busy_processors(),
        // What is carried out after its caller has given up, and nobody is told.
        both("calls late and answers lost", turned("", &Settings::delay, 0.5),
             turned("", &Settings::drop_reply, 0.5)),
    };
  }

 private:
  static Fault both(std::string name, const Fault& one, const Fault& other) {
    return of_all(
        {.name = std::move(name), .at_least = std::chrono::seconds(4)},
        [one, other](Random& random) {
          one.begin(random);
          other.begin(random);
        },
        [one, other] {
          one.heal();
          other.heal();
        });
  }

  Fault turned(std::string name, std::atomic<double> Knobs::Settings::*knob, double by) {
    const auto turn = [this, knob](double change) {
      auto& value = (*knobs_.operator->()).*knob;
      value = value + change;
      ++knobs_->changes;
    };
    return of_all(
        {.name = std::move(name)},
        [this, turn, by](Random& random) {
          knobs_->seed = random();
          turn(by);
        },
        [turn, by] { turn(-by); });
  }

  interlock::TemporaryDirectory directory_;
  Knobs knobs_{(directory_.path() / "knobs").string()};
};

}  // namespace

Kinds memory_kinds() { return {kind<MemoryTopology>("memory"), kind<ChaosTopology>("chaos")}; }

std::unique_ptr<interlock::Backend> open_chaos(const std::string& knobs) {
  return std::make_unique<Steered>(knobs);
}

}  // namespace torture
