// The etcd store beside bare puts on the same server, which it starts itself, and beside etcd's own
// lock for Go.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <thread>

#include "bare/etcd.hpp"
#include "crowd.hpp"
#include "figure.hpp"
#include "interlock/interlock.hpp"
#include "servers/etcd_server.hpp"

namespace {

using namespace interlock;
using bench::BareEtcd;
using bench::per_cycle;
using namespace std::chrono_literals;

constexpr int kThreads = 64;
constexpr int kCycles = 100;

void show_cycle(const Client& locks, BareEtcd& bare) {
  const Mutex mutex(locks, "cycle", {.label = "a label of usual length"});
  bench::show(bench::in_turns(
      {.name = "etcd: acquire + release",
       .baseline_name = "two puts, one after the other",
       .most = 1.3},
      61, [&] { return per_cycle(25, [&] { mutex.acquire().release(); }); },
      [&] {
        return per_cycle(25, [&] {
          bare.put("bare");
          bare.put("bare");
        });
      }));
}

/// The Go program: cycles a second, whenever it is asked.
class Peer {
 public:
  static std::optional<Peer> start(const std::string& address) {
#ifdef INTERLOCK_ETCD_PEER
    if (std::filesystem::file_size(INTERLOCK_ETCD_PEER) == 0) return std::nullopt;
    const auto command = std::string("exec " INTERLOCK_ETCD_PEER " ") + address + " " +
                         std::to_string(kThreads) + " " + std::to_string(kCycles);
    return Peer(command);
#else
    (void)address;
    return std::nullopt;
#endif
  }
  Peer(Peer&& other) noexcept = default;
  ~Peer() {
    if (!in_) return;
    in_.reset();
    ::waitpid(pid_, nullptr, 0);
  }

  double rate() {
    (void)std::fputs("\n", in_.get());
    (void)std::fflush(in_.get());
    double value = 0;
    if (std::fscanf(out_.get(), "%lf", &value) != 1) throw std::runtime_error("the peer failed");
    return value;
  }

 private:
  explicit Peer(const std::string& command) {
    int in[2];
    int out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_.reset(::fdopen(in[1], "w"));
    out_.reset(::fdopen(out[0], "r"));
  }
  struct Close {
    void operator()(FILE* file) const noexcept { (void)std::fclose(file); }
  };

  pid_t pid_ = -1;
  std::unique_ptr<FILE, Close> in_;
  std::unique_ptr<FILE, Close> out_;
};

double rate_of_threads(const Client& locks) {
  const auto time = bench::nanoseconds([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([mutex = Mutex(locks, "thread-" + std::to_string(i))] {
        for (int cycle = 0; cycle < kCycles; ++cycle) mutex.acquire().release();
      });
    }
    for (auto& thread : threads) thread.join();
  });
  return kThreads * kCycles / time * 1e9;
}

void show_threads(const Client& locks, std::optional<Peer>& peer) {
  if (!peer) {
    std::printf("etcd: 64 threads, one client: %s (no Go here to compare with)\n",
                bench::per_second(rate_of_threads(locks)).c_str());
    return;
  }
  bench::show(bench::in_turns(
      {.name = "etcd: 64 at once, one client",
       .baseline_name = "Go's concurrency.Mutex, 64 goroutines",
       .least = 1.0,
       .rate = true},
      7, [&] { return rate_of_threads(locks); }, [&] { return peer->rate(); }));
}

// From the release in one client to the grant in another.
void show_handoff(const std::string& url, BareEtcd& bare) {
  const std::vector<Client> clients{connect(url), connect(url)};
  constexpr int kRounds = 200;
  const auto round = [&] {
    std::vector<std::thread> players;
    return bench::nanoseconds([&] {
             for (const auto& locks : clients) {
               players.emplace_back([mutex = Mutex(locks, "handoff")] {
                 for (int i = 0; i < kRounds; ++i) mutex.acquire().release();
               });
             }
             for (auto& player : players) player.join();
           }) /
           (2 * kRounds);
  };
  const auto figure =
      bench::in_turns({.name = "etcd: handoff between two clients", .baseline_name = ""}, 7, round,
                      [&] { return per_cycle(100, [&] { bare.put("bare"); }); });
  std::printf("%-46s %10s   as long as %.1f puts\n", figure.name.c_str(),
              bench::in_units(figure.ours).c_str(), figure.ours / figure.baseline);
}

}  // namespace

/// With an argument: only the figures that have it in their names.
int main(int argc, char** argv) {
  const auto wanted = [&](std::string_view name) {
    return argc < 2 || name.find(argv[1]) != std::string_view::npos;
  };
  const servers::EtcdServer server;
  // It forks, and has to come before there are threads.
  auto peer = wanted("at once") ? Peer::start(server.address()) : std::nullopt;
  BareEtcd bare(server.address());
  const auto locks = connect(server.url());
  if (wanted("acquire")) show_cycle(locks, bare);
  if (wanted("at once")) show_threads(locks, peer);
  if (wanted("handoff")) show_handoff(server.url(), bare);
}
