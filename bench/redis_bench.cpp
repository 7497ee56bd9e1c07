// The Redis store beside bare hiredis on the same server, which it starts itself.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <fstream>
#include <latch>
#include <memory>
#include <sstream>
#include <thread>

#include "backends/redis/scripts.hpp"
#include "bare/redis.hpp"
#include "crowd.hpp"
#include "detached.hpp"
#include "figure.hpp"
#include "interlock/interlock.hpp"
#include "servers/redis_server.hpp"

namespace {

using namespace interlock;
using namespace bench;
using testing_support::Detached;
using namespace std::chrono_literals;

constexpr const char* kSetAndFence =
    "if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end "
    "local t = redis.call('TIME') "
    "local us = t[1] * 1000000 + t[2] "
    "redis.call('SET', KEYS[2], string.format('%.0f', us)) "
    "return us";
// Cycles a second of 64 threads; each gets a function of its own.
double rate_of_threads(const std::function<std::function<void()>(int)>& make) {
  constexpr int kThreads = 64;
  constexpr int kCycles = 150;
  std::vector<std::function<void()>> cycles;
  for (int i = 0; i < kThreads; ++i) cycles.push_back(make(i));
  const auto time = bench::nanoseconds([&] {
    std::vector<std::thread> threads;
    for (auto& cycle : cycles) {
      threads.emplace_back([&cycle] {
        for (int i = 0; i < kCycles; ++i) cycle();
      });
    }
    for (auto& thread : threads) thread.join();
  });
  return kThreads * kCycles / time * 1e9;
}

constexpr int kCoroutines = 1000;

Detached cycles_of(Mutex mutex, int cycles, std::latch& done) {
  for (int i = 0; i < cycles; ++i) {
    Lease lease = co_await mutex.async_acquire();
    (void)co_await lease.async_release();
  }
  done.count_down();
}

// Cycles a second of a thousand coroutines on the client's one callback thread.
double rate_of_coroutines(const Client& locks) {
  constexpr int kCycles = 20;
  std::latch done(kCoroutines);
  const auto time = bench::nanoseconds([&] {
    for (int i = 0; i < kCoroutines; ++i)
      cycles_of(Mutex(locks, "co-" + std::to_string(i)), kCycles, done);
    done.wait();
  });
  return kCoroutines * kCycles / time * 1e9;
}

// The same scripts with the same words, a thousand at a time on one connection.
double rate_of_pipeline(int port) {
  constexpr int kRounds = 20;
  const redis::KeyNames names("interlock:");
  const redis::ClaimStyle style{.fence = names.fence(), .channel = "interlock:wake:bench"};
  std::string acquires;
  std::string releases;
  for (int i = 0; i < kCoroutines; ++i) {
    const Claim claim{.owner = Owner::random(),
                      .parts = {exclusive("pipe-" + std::to_string(i))},
                      .ttl = 30s,
                      .priority = 0,
                      .who = std::make_shared<const Who>(
                          Who{.label = {}, .identity = {}, .host = "bench", .pid = 1}),
                      .instead_of = {}};
    const auto words = redis::words_of(claim, true, names, style);
    acquires += redis::call(redis::Scripts::all().acquire, words, false);
    releases += redis::call(redis::Scripts::all().release,
                            redis::release_words(claim, names, style), false);
  }
  redisContext* context = redisConnect("127.0.0.1", port);
  const auto time = bench::nanoseconds([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (const auto* batch : {&acquires, &releases}) {
        redisAppendFormattedCommand(context, batch->data(), batch->size());
        for (int i = 0; i < kCoroutines; ++i) {
          void* reply = nullptr;
          if (redisGetReply(context, &reply) != REDIS_OK) std::exit(1);
          freeReplyObject(reply);
        }
      }
    }
  });
  redisFree(context);
  return kCoroutines * kRounds / time * 1e9;
}

// Microseconds of CPU that a process used so far.
double cpu_us(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  double ticks = 0;
  for (int i = 3; fields >> field; ++i) {
    if (i == 14 || i == 15) ticks += std::stod(field);
  }
  return ticks * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string info(BareRedis& bare, const std::string& section, const std::string& field) {
  const auto reply = bare.call({"INFO", section});
  const std::string text(reply->str, reply->len);
  const auto at = text.find(field);
  if (at == std::string::npos) return "0";
  const auto begin = at + field.size();
  return text.substr(begin, text.find_first_of(",\r", begin) - begin);
}

// Time the server spends in one call of a script, in nanoseconds.
double server_ns(BareRedis& bare, const std::function<void()>& run) {
  bare.call({"CONFIG", "RESETSTAT"});
  for (int i = 0; i < 2000; ++i) run();
  const auto field = "cmdstat_evalsha:calls=";
  const auto calls = std::stod(info(bare, "commandstats", field));
  const auto usec = std::stod(info(
      bare, "commandstats", std::string(field) + info(bare, "commandstats", field) + ",usec="));
  return usec / calls * 1e3;
}

void show_handoff(servers::RedisServer& server, BareRedis& bare) {
  const Apart apart(server.process().pid());
  const auto url = server.url();
  bench::show(bench::in_turns(
      {.name = "redis: handoff to a waiter in another process",
       .ours = 0,
       .baseline_name = "PING",
       .baseline = 0,
       .most = 3},
      7, [&] { return handoff_ns(url); },
      [&] { return bench::at_times([&] { bare.call({"PING"}); }); }));
}

void show_crowd(const std::string& url, int port) {
  constexpr std::int64_t kTime = 3'000'000'000;
  const auto ours = crowd(16, [&, until = now_ns() + kTime](const auto& section) {
    const auto locks = connect(url);
    const Mutex mutex(locks, "hot");
    while (now_ns() < until) {
      auto lease = mutex.acquire();
      section([] {});
    }
  });
  const auto polling = crowd(16, [&, until = now_ns() + kTime](const auto& section) {
    BareRedis poller(port);
    const auto token = std::to_string(::getpid());
    while (now_ns() < until) {
      while (poller.call({"SET", "polled", token, "NX", "PX", "30000"})->type == REDIS_REPLY_NIL)
        std::this_thread::sleep_for(50ms);
      section([] {});
      poller.call({"DEL", "polled"});
    }
  });
  bench::show({.name = "redis: handoffs, 16 processes on one lock",
               .ours = handoff_rate(ours),
               .baseline_name = "the same with polling at 50 ms",
               .baseline = handoff_rate(polling),
               .least = 50,
               .rate = true});
}

void show_cycle(servers::RedisServer& server, BareRedis& bare) {
  const Apart apart(server.process().pid());
  const auto locks = connect(server.url());
  const Mutex mutex(locks, "billing:invoice-42");
  bench::show(bench::in_turns(
      {.name = "redis: acquire + release",
       .ours = 0,
       .baseline_name = "hiredis: SET NX PX, compare-and-delete",
       .baseline = 0,
       .most = 1.15},
      15, [&] { return per_cycle(1000, [&] { auto lease = mutex.acquire(); }); },
      [&] { return per_cycle(1000, [&] { bare.cycle("bare"); }); }));
}

// Row 2.10: what a toolkit for Redis measures of its locks, beside the same by hand.
void show_forms(servers::RedisServer& server, BareRedis& bare) {
  const Apart apart(server.process().pid());
  const auto locks = connect(server.url());
  const auto beside = [&](const std::string& name, const std::string& baseline, double most,
                          const auto& ours, const auto& by_hand) {
    bench::show(bench::in_turns(
        {.name = name, .ours = 0, .baseline_name = baseline, .baseline = 0, .most = most}, 9,
        [&] { return per_cycle(1000, ours); }, [&] { return per_cycle(1000, by_hand); }));
  };
  const auto cycle = [&] { bare.cycle("bare"); };
  const auto held = Mutex(locks, "taken").acquire();
  bare.call({"SET", "bare:taken", kToken, "NX", "PX", "600000"});
  const Mutex taken(connect(server.url()), "taken");
  beside(
      "redis: try that finds it taken", "hiredis: SET NX PX that is refused", 1.5,
      [&] {
        if (taken.try_acquire()) std::exit(1);
      },
      [&] {
        bare.call({"SET", "bare:taken", kToken, "NX", "PX", "30000"});
      });
  const RwLock book(locks, "book");
  beside(
      "redis: read + release", "hiredis: SET NX PX, compare-and-delete", 2,
      [&] { auto lease = book.read(); }, cycle);
  beside(
      "redis: write + release", "hiredis: SET NX PX, compare-and-delete", 1.15,
      [&] { auto lease = book.write(); }, cycle);
}

void show_threads(const Client& locks, int port) {
  bench::show(bench::in_turns(
      {.name = "redis: 64 threads, distinct locks, one client",
       .ours = 0,
       .baseline_name = "64 threads, a hiredis connection each",
       .baseline = 0,
       .least = 2,
       .rate = true},
      5,
      [&] {
        return rate_of_threads([&](int i) -> std::function<void()> {
          return [own = Mutex(locks, "lock-" + std::to_string(i))] { auto lease = own.acquire(); };
        });
      },
      [&] {
        return rate_of_threads([&](int i) -> std::function<void()> {
          return [own = std::make_shared<BareRedis>(port), key = "bare-" + std::to_string(i)] {
            own->cycle(key);
          };
        });
      }));
}

void show_coroutines(const Client& locks, int port) {
  bench::show(bench::in_turns(
      {.name = "redis: 1,000 coroutines, distinct locks",
       .ours = 0,
       .baseline_name = "the same scripts, pipelined by hiredis",
       .baseline = 0,
       .least = 0.6,
       .rate = true},
      5, [&] { return rate_of_coroutines(locks); }, [&] { return rate_of_pipeline(port); }));
}

void show_server_time(servers::RedisServer& server, BareRedis& bare) {
  const Apart apart(server.process().pid());
  const auto locks = connect(server.url());
  const auto set_sha = std::string(bare.call({"SCRIPT", "LOAD", kSetAndFence})->str);
  const auto delete_sha = std::string(bare.call({"SCRIPT", "LOAD", kCompareAndDelete})->str);
  const Mutex own(locks, "s");
  bench::show(bench::in_turns(
      {.name = "redis: server time, acquire + release",
       .ours = 0,
       .baseline_name = "scripts: SET, TIME, SET; compare-and-delete",
       .baseline = 0,
       .most = 1.25},
      9, [&] { return 2 * server_ns(bare, [&] { auto held = own.acquire(); }); },
      [&] {
        return 2 * server_ns(bare, [&] {
                 bare.call({"EVALSHA", set_sha, "2", "plain", "plain:fence", kToken, "30000"});
                 bare.call({"EVALSHA", delete_sha, "1", "plain", kToken});
               });
      }));
}

void show_many_leases(const std::string& url, pid_t server, BareRedis& bare) {
  constexpr int kLeases = 10'000;
  const auto many = connect(url);
  rusage before{};
  const auto memory = [] {
    std::ifstream file("/proc/self/statm");
    double size = 0;
    double resident = 0;
    file >> size >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  };
  const double bytes = memory();
  std::vector<Lease> leases;
  leases.reserve(kLeases);
  for (int i = 0; i < kLeases; ++i)
    leases.push_back(Mutex(many, "held-" + std::to_string(i)).acquire());
  const double each = (memory() - bytes) / kLeases;
  std::this_thread::sleep_for(11s);  // renewals are spread from here on
  ::getrusage(RUSAGE_SELF, &before);
  const double server_before = cpu_us(server);
  const auto begin = now_ns();
  std::this_thread::sleep_for(10s);
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  const auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  const double client =
      us(after.ru_utime) + us(after.ru_stime) - us(before.ru_utime) - us(before.ru_stime);
  const double both = client + cpu_us(server) - server_before;
  bench::show({.name = "redis: 10,000 leases of 30 s, CPU of both",
               .ours = both * 1e3,
               .baseline_name = "a core",
               .baseline = static_cast<double>(now_ns() - begin),
               .most = 0.03});
  std::printf("%-46s %8.0f B   %-44s %10s   %6.2fx (bar <= 1x) %s\n", "redis: memory of a lease",
              each, "1.5 KB", "", each / 1536, each <= 1536 ? "ok" : "MISSES THE BAR");
  std::printf("%-46s %10s\n", "redis: connections, all clients of this run",
              info(bare, "clients", "connected_clients:").c_str());
}

}  // namespace

/// With an argument: only the figures that have it in their names.
int main(int argc, char** argv) {
  const auto wanted = [&](std::string_view name) {
    return argc < 2 || name.find(argv[1]) != std::string_view::npos;
  };
  servers::RedisServer server;
  const auto url = server.url();
  BareRedis bare(server.port());
  // These fork, and have to come before there are threads.
  if (wanted("handoff")) show_handoff(server, bare);
  if (wanted("crowd")) show_crowd(url, server.port());
  if (wanted("cycle")) show_cycle(server, bare);
  if (wanted("forms")) show_forms(server, bare);
  if (wanted("server time")) show_server_time(server, bare);
  const auto locks = connect(url);
  if (wanted("threads")) show_threads(locks, server.port());
  if (wanted("coroutines")) show_coroutines(locks, server.port());
  if (wanted("leases")) show_many_leases(url, server.process().pid(), bare);
}
