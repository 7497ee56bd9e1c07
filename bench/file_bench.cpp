// The file store beside what it costs to do the same by hand.
//
//     file_bench [directory]
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "figure.hpp"
#include "interlock/interlock.hpp"
#include "interlock/stores.hpp"

namespace {

using namespace std::chrono_literals;
using namespace interlock;
namespace fs = std::filesystem;

constexpr int kRounds = 9;
constexpr int kCycles = 500;

Claim claim_on(const std::string& resource) {
  return {.owner = Owner::random(),
          .parts = {{.resource = resource}},
          .ttl = 30s,
          .who = std::make_shared<const Who>(
              Who{.label = "bench", .identity = {}, .host = "localhost", .pid = ::getpid()})};
}

Answer take(Backend& backend, const Claim& claim) {
  Answer answer;
  backend.acquire(claim, true, {.caller_waits = true}, [&](Answer a) { answer = std::move(a); });
  if (answer.verdict != Verdict::granted) {
    std::fprintf(stderr, "not granted: %s\n", answer.why ? answer.why->what() : "");
    std::exit(1);
  }
  return answer;
}

void give_back(Backend& backend, const Claim& claim) {
  backend.release(claim, {.caller_waits = true}, [](Answer) {});
}

// open, flock, read, write a new file, rename it, unlock: the same bytes by hand.
void by_hand(int directory, const std::string& bytes) {
  const int lock = ::openat(directory, "hand.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ::flock(lock, LOCK_EX);
  std::string buffer(4096, '\0');
  if (const int old = ::openat(directory, "hand.json", O_RDONLY | O_CLOEXEC); old >= 0) {
    [[maybe_unused]] const auto got = ::read(old, buffer.data(), buffer.size());
    ::close(old);
  }
  const int next = ::openat(directory, "hand.next", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  [[maybe_unused]] const auto put = ::write(next, bytes.data(), bytes.size());
  ::close(next);
  ::renameat(directory, "hand.next", directory, "hand.json");
  ::flock(lock, LOCK_UN);
  ::close(lock);
}

// How long one of them takes, the median of `kCycles`: a slow disk's hiccups are not ours.
template <class Run>
double each_ns(Run run) {
  std::vector<double> times;
  for (int i = 0; i < kCycles; ++i) times.push_back(bench::nanoseconds([&] { run(i); }));
  return bench::median(std::move(times));
}

double cycle_ns(Backend& backend, const std::string& prefix, int names) {
  return each_ns([&](int i) {
    const auto claim = claim_on(prefix + std::to_string(i % names));
    take(backend, claim);
    give_back(backend, claim);
  });
}

void hold(Backend& backend, int records) {
  for (int i = 0; i < records; ++i) take(backend, claim_on("held-" + std::to_string(i)));
}

// Processes that all want one lock: the median time from a release to the next one's grant.
double handoff_ns(const fs::path& directory, int processes) {
  const int rounds = 1600 / processes;
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) std::exit(1);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      Client locks(file_store(directory));
      Mutex mutex(locks, "baton");
      for (int i = 0; i < rounds; ++i) {
        auto lease = mutex.acquire();
        const auto got = BootClock::now().time_since_epoch().count();
        // Time in the section, so that the others are surely in line again.
        while (BootClock::now().time_since_epoch().count() - got < 200'000) {
        }
        const std::int64_t times[2] = {got, BootClock::now().time_since_epoch().count()};
        [[maybe_unused]] const auto put = ::write(pipe_ends[1], times, sizeof times);
        (void)lease.release();
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(pipe_ends[1]);
  std::vector<std::pair<std::int64_t, std::int64_t>> holds;
  for (std::int64_t times[2]; ::read(pipe_ends[0], times, sizeof times) == sizeof times;) {
    holds.emplace_back(times[0], times[1]);
  }
  for (const auto child : children) ::waitpid(child, nullptr, 0);
  ::close(pipe_ends[0]);
  std::sort(holds.begin(), holds.end());
  std::vector<double> gaps;
  for (std::size_t i = 1; i < holds.size(); ++i) {
    gaps.push_back(static_cast<double>(holds[i].first - holds[i - 1].second));
  }
  return bench::median(std::move(gaps));
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path base = argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path();
  const fs::path directory = base / ("interlock-bench-" + std::to_string(::getpid()));
  for (const int processes : {2, 16}) {
    bench::show({.name = "file: handoff, " + std::to_string(processes) + " processes on one lock",
                 .ours = handoff_ns(directory, processes),
                 .baseline_name = "a millisecond",
                 .baseline = 1e6,
                 .most = 1});
  }
  {
    const auto backend = file_store(directory);
    backend->on_wake([](const Owner&) {});
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // The same bytes: a file with one record.
    const auto sample = claim_on("sample");
    take(*backend, sample);
    std::string bytes;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".json")
        bytes.resize(std::max<std::size_t>(bytes.size(), fs::file_size(entry)), 'x');
    }
    give_back(*backend, sample);
    const auto bare_ns = [&] {
      return each_ns([&](int) {
        by_hand(fd, bytes);
        by_hand(fd, bytes.substr(0, 120));
      });
    };
    const auto one = bench::in_turns(
        {.name = "file: acquire + release",
         .ours = 0,
         .baseline_name = "flock, read, write, rename twice by hand",
         .baseline = 0,
         .most = 3},
        kRounds, [&] { return cycle_ns(*backend, "one-", 1); }, bare_ns);
    bench::show(one);
    bench::show({.name = "file: acquire + release",
                 .ours = one.ours,
                 .baseline_name = "a hundredth of 7.8 ms",
                 .baseline = 7.8e4,
                 .most = 1});
    ::close(fd);
  }
  {
    const auto few = file_store(directory / "few");
    const auto many = file_store(directory / "many");
    for (const auto* backend : {&few, &many}) (*backend)->on_wake([](const Owner&) {});
    hold(*few, 10);
    hold(*many, 10'000);
    bench::show(bench::in_turns(
        {.name = "file: acquire + release among 10,000 records",
         .ours = 0,
         .baseline_name = "the same among 10",
         .baseline = 0,
         .most = 2},
        kRounds, [&] { return cycle_ns(*many, "name-", 100); },
        [&] { return cycle_ns(*few, "name-", 100); }));
  }
  fs::remove_all(directory);
}
