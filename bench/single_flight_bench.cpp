// A cache stampede: three processes with a hundred callers each want a value that takes two seconds to
// make. It is made once, and all of them should have it hardly later than the one who made it.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "crowd.hpp"
#include "figure.hpp"
#include "file_cache.hpp"
#include "interlock/interlock.hpp"
#include "servers/redis_server.hpp"

namespace {

using namespace interlock;
using namespace std::chrono_literals;
using testing_support::FileCache;

constexpr int kProcesses = 3;
constexpr int kCallers = 100;
constexpr auto kGenerator = 2s;

// One process: connects, and is there in time for the start.
void fly(const std::string& url, const FileCache& cache, std::int64_t start) {
  SingleFlight flight(connect(url), cache.functions(), [&](const std::string&) {
    cache.count_run();
    std::this_thread::sleep_for(kGenerator);
    return std::string("value");
  });
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      std::this_thread::sleep_for(std::chrono::nanoseconds(start - bench::now_ns()));
      if (flight.get("k") != "value") std::_Exit(1);
    });
  }
}

// From the start until the last caller has it.
double stampede_ns(const std::string& url, const FileCache& cache) {
  const auto start = bench::now_ns() + std::chrono::nanoseconds(1s).count();
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      fly(url, cache, start);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  bool good = true;
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    good = good && status == 0;
  }
  const auto end = bench::now_ns();
  if (!good || cache.runs() != 1) {
    std::fprintf(stderr, "%s: %d runs, and not one; or somebody got nothing\n", url.c_str(),
                 cache.runs());
    std::exit(1);
  }
  return static_cast<double>(end - start);
}

void show(const std::string& name, const std::string& url, const std::filesystem::path& directory) {
  std::vector<double> times;
  for (int round = 0; round < 3; ++round)
    times.push_back(stampede_ns(url, FileCache(directory / std::to_string(round))));
  bench::show({.name = name + ": 3 x 100 callers of a single flight",
               .ours = bench::median(std::move(times)),
               .baseline_name = "the generator alone",
               .baseline = std::chrono::duration<double, std::nano>(kGenerator).count(),
               .most = 1.1});
}

}  // namespace

int main() {
  const TemporaryDirectory directory;
  const servers::RedisServer server;
  show("file", "file://" + (directory.path() / "locks").string(), directory.path() / "file");
  show("redis", server.url(), directory.path() / "redis");
}
