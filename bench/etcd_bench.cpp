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
constexpr int kCycles = 50;

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

/// Go's driver of the comparison (bench/peers/README.md): cycles a second, whenever it is asked.
class Peer {
 public:
  static std::optional<Peer> start(const std::string& url) {
#ifdef INTERLOCK_ETCD_PEER
    if (std::filesystem::file_size(INTERLOCK_ETCD_PEER) == 0) return std::nullopt;
    return Peer({INTERLOCK_ETCD_PEER, "etcd_mutex", "default", url});
#else
    (void)url;
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
    const auto done =
        ask(R"({"do":"work","name":"peer","distinct":true,"workers":)" + std::to_string(kThreads) +
            R"(,"most":)" + std::to_string(kCycles) + R"(,"seconds":60})");
    return number(done, "cycles") / number(done, "seconds");
  }

 private:
  explicit Peer(std::vector<std::string> command) {
    int in[2];
    int out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      std::vector<char*> words;
      for (auto& word : command) words.push_back(word.data());
      words.push_back(nullptr);
      ::execv(words.front(), words.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_.reset(::fdopen(in[1], "w"));
    out_.reset(::fdopen(out[0], "r"));
    (void)answer();  // that it is ready
  }
  struct Close {
    void operator()(FILE* file) const noexcept { (void)std::fclose(file); }
  };

  std::string ask(const std::string& job) {
    (void)std::fputs((job + "\n").c_str(), in_.get());
    (void)std::fflush(in_.get());
    return answer();
  }
  std::string answer() {
    std::string line;
    for (int c = std::fgetc(out_.get()); c != '\n'; c = std::fgetc(out_.get())) {
      if (c == EOF) throw std::runtime_error("the peer failed");
      line += static_cast<char>(c);
    }
    return line;
  }
  static double number(const std::string& answer, const std::string& field) {
    const auto at = answer.find('"' + field + "\":");
    if (at == std::string::npos) throw std::runtime_error("the peer failed: " + answer);
    return std::stod(answer.substr(at + field.size() + 3));
  }

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
  auto peer = wanted("at once") ? Peer::start(server.url()) : std::nullopt;
  BareEtcd bare(server.address());
  const auto locks = connect(server.url());
  if (wanted("acquire")) show_cycle(locks, bare);
  if (wanted("at once")) show_threads(locks, peer);
  if (wanted("handoff")) show_handoff(server.url(), bare);
}
