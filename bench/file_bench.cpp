// The file store beside what it costs to do the same by hand. Prints "name value ratio" lines.
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

#include "interlock/interlock.hpp"
#include "interlock/stores.hpp"

namespace {

using namespace std::chrono_literals;
using namespace interlock;
namespace fs = std::filesystem;

constexpr int kRounds = 4000;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The median of `kRounds` runs, in microseconds.
template <class Run>
double microseconds(Run run) {
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run(i);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  return median(times);
}

void print(const char* name, double value, const char* unit, double ratio) {
  std::printf("%-58s %9.1f %s %8.2f\n", name, value, unit, ratio);
  std::fflush(stdout);
}

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

double cycle(Backend& backend, const std::string& prefix, int names) {
  return microseconds([&](int i) {
    const auto claim = claim_on(prefix + std::to_string(i % names));
    take(backend, claim);
    give_back(backend, claim);
  });
}

// Two processes that hand one lock to and fro: how long from the release to the other's grant.
void handoff(const fs::path& directory, int processes, int rounds, double& p50, double& p99) {
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
    gaps.push_back(static_cast<double>(holds[i].first - holds[i - 1].second) / 1000.0);
  }
  std::sort(gaps.begin(), gaps.end());
  p50 = gaps[gaps.size() / 2];
  p99 = gaps[gaps.size() * 99 / 100];
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path base = argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path();
  const fs::path directory = base / ("interlock-bench-" + std::to_string(::getpid()));
  double p50 = 0;
  double p99 = 0;
  for (const int processes : {2, 16}) {
    handoff(directory, processes, 1600 / processes, p50, p99);
    const auto name = "handoff, " + std::to_string(processes) + " processes, one lock, median";
    print(name.c_str(), p50, "us", p50 / 1000.0);
    print("  the slowest of a hundred", p99, "us", p99 / 1000.0);
  }
  {
    auto backend = file_store(directory);
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
    const double bare = microseconds([&](int) {
      by_hand(fd, bytes);
      by_hand(fd, bytes.substr(0, 120));
    });
    print("twice open, flock, read, write, rename, unlock by hand", bare, "us", 1.0);
    const double one = cycle(*backend, "one-", 1);
    print("acquire and release, one name", one, "us", one / bare);
    ::close(fd);

    for (int i = 0; i < 10; ++i) take(*backend, claim_on("held-" + std::to_string(i)));
    const double ten = cycle(*backend, "name-", 100);
    print("acquire and release, 100 names, 10 records", ten, "us", ten / bare);
    for (int i = 10; i < 10'000; ++i) take(*backend, claim_on("held-" + std::to_string(i)));
    const double many = cycle(*backend, "name-", 100);
    print("the same with 10,000 records (ratio to 10 records)", many, "us", many / ten);
  }
  fs::remove_all(directory);
}
