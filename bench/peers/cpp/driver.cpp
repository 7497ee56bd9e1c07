// Interlock, and the floors below it: see ../README.md.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "rounds.hpp"

namespace {

using namespace peers;
using nlohmann::json;

long resident_kb() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

std::unique_ptr<Peer> make(const std::string& name, bool best, const Addresses& addresses) {
  const std::map<std::string, std::function<std::unique_ptr<Peer>()>> all{
      {"interlock", [&] { return interlock_peer(addresses, best); }},
      {"interlock_lease", [&] { return interlock_lease_peer(addresses, best); }},
      {"hiredis", [&] { return redis_peer(addresses); }},
      {"libpq", [&] { return postgres_peer(addresses); }},
      {"grpc", [&] { return etcd_peer(addresses); }},
      {"timed_mutex", timed_mutex_peer},
      {"shared_timed_mutex", shared_timed_mutex_peer},
      {"absl", absl_peer},
  };
  const auto found = all.find(name);
  if (found == all.end()) throw std::runtime_error("no peer is called " + name);
  return found->second();
}

/// A thread each; the first error of any.
void with_threads(Peer& peer, const Work& work, std::vector<Rounds>& workers) {
  std::mutex guard;
  std::exception_ptr failed;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    auto lock = peer.lock(work.lock_of(static_cast<int>(i)), work.ttl);
    threads.emplace_back([&, lock = std::move(lock), &rounds = workers[i]] {
      try {
        while (rounds.next()) {
          rounds.enter(lock->take(rounds.shared()));
          rounds.leave();
          lock->give();
          rounds.done();
        }
      } catch (...) {
        const std::lock_guard hold(guard);
        failed = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failed) std::rethrow_exception(failed);
}

json do_work(Peer& peer, const Work& work) {
  if (const auto why = peer.cannot(work); !why.empty()) return {{"cannot", why}};
  Inside inside;
  std::vector<Rounds> workers;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < work.workers; ++i) workers.emplace_back(work, i, peer.batch(), inside);
  if (!peer.without_threads(work, workers)) with_threads(peer, work, workers);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  std::int64_t cycles = 0;
  std::int64_t overlaps = 0;
  auto records = json::array();
  auto times = json::array();
  for (const auto& rounds : workers) {
    cycles += rounds.cycles();
    overlaps += rounds.overlaps();
    for (const auto& record : rounds.records()) records.push_back(record);
    for (const auto& time : rounds.cycle_us()) times.push_back(time);
  }
  return {{"cycles", cycles},     {"seconds", took.count()}, {"failed", 0},
          {"overlaps", overlaps}, {"rss_kb", resident_kb()}, {"records", records},
          {"cycle_us", times}};
}

json do_hold(Peer& peer, const json& job, std::vector<std::unique_ptr<Lock>>& held) {
  const auto begin = std::chrono::steady_clock::now();
  const auto count = job.at("count").get<int>();
  std::vector<double> last;
  for (int i = 0; i < count; ++i) {
    const auto from = std::chrono::steady_clock::now();
    held.push_back(peer.lock(job.at("name").get<std::string>() + "-" + std::to_string(i),
                             std::chrono::milliseconds(job.at("ttl_ms").get<int>())));
    held.back()->take(false);
    if (i >= count - 100)
      last.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from)
              .count());
  }
  std::sort(last.begin(), last.end());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {{"held", count},
          {"seconds", took.count()},
          {"last_us", last.empty() ? 0 : last[last.size() / 2]},
          {"rss_kb", resident_kb()}};
}

Work work_of(const json& job) {
  return {.name = job.at("name"),
          .distinct = job.value("distinct", false),
          .workers = job.value("workers", 1),
          .shared = job.value("shared", 0.0),
          .time = std::chrono::duration<double>(job.value("seconds", 1.0)),
          .most = job.value("most", 0),
          .hold = std::chrono::microseconds(job.value("hold_us", 0)),
          .ttl = std::chrono::milliseconds(job.value("ttl_ms", 30'000)),
          .register_path = job.value("register", ""),
          .records = job.value("records", false)};
}

json answer(Peer& peer, const std::string& line, std::vector<std::unique_ptr<Lock>>& held) {
  const auto job = json::parse(line);
  if (job.at("do") == "work") return do_work(peer, work_of(job));
  if (job.at("do") == "hold") return do_hold(peer, job, held);
  return {{"cannot", "no such job"}};
}

int drive(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    std::cerr << "usage: driver PEER default|best ADDRESS...\n";
    return 64;
  }
  const auto peer = make(words[0], words[1] == "best", Addresses(words.begin() + 2, words.end()));
  std::cout << json{{"ready", true},
                    {"version", peer->version()},
                    {"settings", peer->settings()},
                    {"best", peer->has_best()}}
            << std::endl;
  std::vector<std::unique_ptr<Lock>> held;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(*peer, line, held) << std::endl;
    } catch (const std::exception& error) {
      std::cout << json{{"error", error.what()}} << std::endl;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return drive({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}} << std::endl;
    return 1;
  }
}
