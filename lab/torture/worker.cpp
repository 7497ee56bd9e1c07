#include "worker.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "hand.hpp"
#include "interlock/mutex.hpp"
#include "no_memory.hpp"

namespace torture {

using namespace std::chrono_literals;

namespace {

// A call's timeout, a few more tries, and messages that come late.
constexpr interlock::Duration kGoneWithin = 20s;

int entries(const char* directory) {
  const std::filesystem::directory_iterator each(directory);
  return static_cast<int>(std::distance(begin(each), end(each)));
}

std::int64_t cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return (std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

std::int64_t memory() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void write_figures(const Log& log, const char* when) {
  log.add("figures", {{"when", when},
                      {"threads", entries("/proc/self/task")},
                      {"descriptors", entries("/proc/self/fd") - 1},
                      {"memory", memory()},
                      {"cpu", cpu_time()}});
}

void wait_for_end_of_input() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char byte = 0;
  while (::poll(&input, 1, -1) < 0 || ::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

// All calls have ended, and the store is well: what this process took has to be gone, however long its TTL is.
void look_for_own(const Worker& worker) {
  std::string left;
  for (const auto until = now() + kGoneWithin.count(); now() < until;) {
    try {
      left.clear();
      for (const auto& resource : worker.client.inspect({.prefix = worker.plan.prefix}).resources) {
        for (const auto& holder : resource.holders) {
          if (holder.who.pid == ::getpid())
            left += resource.resource + " (" + holder.owner.brief() + "), ";
        }
      }
      if (left.empty()) return;
    } catch (const interlock::Error&) {
      // Whether the store recovers is another check's.
    }
    std::this_thread::sleep_for(50ms);
  }
  if (left.empty()) return;
  worker.log.add("left", {{"what", left + "held by worker " + worker.plan.name}});
}

}  // namespace

void to_json(Json& json, const WorkerPlan& plan) {
  json = {{"name", plan.name},
          {"url", plan.url},
          {"prefix", plan.prefix},
          {"seed", plan.seed},
          {"hands", plan.hands},
          {"directory", plan.directory.string()},
          {"command", plan.command.string()},
          {"self", plan.self},
          {"shortest_ttl", plan.shortest_ttl.count()},
          {"across_processes", plan.across_processes},
          {"long_ttl", plan.long_ttl.count()}};
}

void from_json(const Json& json, WorkerPlan& plan) {
  plan.name = json.at("name");
  plan.url = json.at("url");
  plan.prefix = json.at("prefix");
  plan.seed = json.at("seed");
  plan.hands = json.at("hands");
  plan.directory = json.at("directory").get<std::string>();
  plan.command = json.at("command").get<std::string>();
  plan.self = json.at("self").get<std::vector<std::string>>();
  plan.shortest_ttl = interlock::Duration(json.at("shortest_ttl").get<std::int64_t>());
  plan.across_processes = json.at("across_processes");
  plan.long_ttl = interlock::Duration(json.at("long_ttl").get<std::int64_t>());
}

Worker::Worker(WorkerPlan its, const Opener& open)
    : plan(std::move(its)),
      log(plan.directory / ("worker-" + plan.name + ".log")),
      client(open(plan.url)) {}

std::string Worker::next_op() { return plan.name + "/" + std::to_string(++ops); }

int run_worker(const Opener& open) {
  const Exempt me;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string line;
  std::getline(std::cin, line);
  const auto plan = Json::parse(line).get<WorkerPlan>();
  std::optional<Worker> worker;
  // The store may be away or full just now: then this worker comes when it is well.
  const auto until = now() + std::chrono::nanoseconds(60s).count();
  while (!worker) {
    try {
      worker.emplace(plan, open);
      // Whatever is made at the first use is there when the figures are taken.
      (void)interlock::Mutex(worker->client, plan.prefix + "warm:" + plan.name).try_acquire();
    } catch (const interlock::Error& error) {
      worker.reset();
      if (now() > until) {
        std::cerr << "worker " << plan.name << ": " << error.what() << "\n";
        return 1;
      }
      std::this_thread::sleep_for(100ms);
    }
  }
  worker->log.add("start", {{"pid", ::getpid()}});
  {
    std::vector<std::unique_ptr<Hand>> hands;
    std::vector<std::jthread> threads;
    hands.reserve(static_cast<std::size_t>(plan.hands));
    threads.reserve(static_cast<std::size_t>(plan.hands));
    for (int i = 0; i < plan.hands; ++i) hands.push_back(std::make_unique<Hand>(*worker, i));
    write_figures(worker->log, "begin");
    for (auto& hand : hands) threads.emplace_back([&hand] { hand->run(); });
    wait_for_end_of_input();
    worker->ending.request_stop();
    worker->watch.cancel_all();
  }
  look_for_own(*worker);
  write_figures(worker->log, "end");
  std::this_thread::sleep_for(1s);
  write_figures(worker->log, "idle");
  worker->log.add("end");
  return 0;
}

namespace {
volatile std::sig_atomic_t asked_to_end = 0;
}

int run_touch(const std::vector<std::string>& words) {
  std::signal(SIGTERM, [](int) { asked_to_end = 1; });
  const std::filesystem::path directory = words.at(0);
  const auto& op = words.at(1);
  const auto lasts = std::chrono::milliseconds(std::stoi(words.at(4)));
  auto file = op;
  file.replace(file.find('/'), 1, "_");
  const Log log(directory / ("command-" + file + ".log"));
  const auto* fence = std::getenv("INTERLOCK_FENCE");
  Json line{{"lease", op},      {"op", op},         {"owner", std::getenv("INTERLOCK_OWNER")},
            {"identity", ""},   {"r", words.at(2)}, {"m", "exclusive"},
            {"n", 1},           {"c", 0},           {"asked", std::stoll(words.at(3))},
            {"adopted", false}, {"until", now()}};
  if (fence != nullptr) line["fence"] = std::stoull(fence);
  log.add("holds", line);
  const auto end = now() + std::chrono::nanoseconds(lasts).count();
  // It does not hurry to end when it is told to: the lock has to be there until it has.
  const auto late = std::chrono::milliseconds(50);
  while (now() < end && asked_to_end == 0) {
    std::this_thread::sleep_for(3ms);
    const auto at = now();
    log.add("valid", {{"t", at}, {"lease", op}, {"until", at}});
  }
  for (const auto over = now() + std::chrono::nanoseconds(late).count();
       asked_to_end != 0 && now() < over;) {
    const auto at = now();
    log.add("valid", {{"t", at}, {"lease", op}, {"until", at}});
    std::this_thread::sleep_for(3ms);
  }
  log.add("leaves", {{"lease", op}, {"r", words.at(2)}});
  return 0;
}

}  // namespace torture
