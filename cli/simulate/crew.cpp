#include "simulate/crew.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "arguments.hpp"
#include "command.hpp"
#include "simulate/worker.hpp"

namespace cli::simulation {

namespace {

/// What posix_spawn is told.
class Files {
 public:
  Files() { ::posix_spawn_file_actions_init(&actions_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { ::posix_spawn_file_actions_destroy(&actions_); }
  /// Stays open there, too.
  void keep(int fd) { ::posix_spawn_file_actions_adddup2(&actions_, fd, fd); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Crew::Crew(Arena& arena, std::vector<std::string> words)
    : arena_(arena), words_(std::move(words)), members_(arena.plan().processes) {}

Crew::~Crew() {
  for (auto& member : members_) {
    if (member.pid == 0) continue;
    ::kill(member.pid, SIGKILL);
    ::waitpid(member.pid, nullptr, 0);
  }
}

void Crew::start(std::uint32_t process) {
  auto& member = members_[process];
  // What others may see of its arguments. The store's URL may have a password.
  std::vector<std::string> shown{"interlock", "simulate", to_string(arena_.plan().kind),
                                 "--member=" + std::to_string(arena_.fd()) + ":" +
                                     std::to_string(process) + ":" + std::to_string(member.life++)};
  std::vector<std::string> arguments(shown.begin() + 1, shown.end());
  arguments.insert(arguments.end(), words_.begin(), words_.end());
  const auto file = file_of(arguments);
  auto variable = std::string(kArgumentsVariable) + "=" + std::to_string(file.get());
  std::vector<char*> variables{variable.data()};
  for (char** one = environ; *one != nullptr; ++one) variables.push_back(*one);
  variables.push_back(nullptr);
  std::vector<char*> argv;
  argv.reserve(shown.size() + 1);
  for (auto& word : shown) argv.push_back(word.data());
  argv.push_back(nullptr);
  Files files;
  files.keep(arena_.fd());
  files.keep(file.get());
  const int error = ::posix_spawn(&member.pid, "/proc/self/exe", files.get(), nullptr, argv.data(),
                                  variables.data());
  if (error != 0) {
    member.pid = 0;
    throw Failure(kSystem,
                  "another process can't be started: " + std::generic_category().message(error) +
                      "; try with fewer --processes");
  }
}

void Crew::mark(std::uint32_t process, Event::Kind kind, interlock::Duration begin) {
  const auto threads = arena_.plan().threads;
  for (auto worker = process * threads; worker < (process + 1) * threads; ++worker) {
    arena_.add(
        worker,
        {.begin = begin, .end = arena_.now(), .kind = kind, .lane = 0, .lanes = 1, .resource = 0});
  }
}

void Crew::kill(std::uint32_t process) {
  const auto threads = arena_.plan().threads;
  {
    Register::Pause pause(arena_.watch());
    ::kill(members_[process].pid, SIGKILL);
    ::waitpid(std::exchange(members_[process].pid, 0), nullptr, 0);
    for (auto worker = process * threads; worker < (process + 1) * threads; ++worker) {
      pause.forget(worker);
      auto& now = arena_.tally(worker).now;
      if (now.begin != interlock::Duration{}) {
        now.end = arena_.now();
        arena_.add(worker, std::exchange(now, {}));
      }
    }
  }
  mark(process, Event::killed, arena_.now());
  ++arena_.shared().kills;
  if (stopped_ == process) stopped_.reset();
  start(process);
}

void Crew::stop(std::uint32_t process) {
  const Register::Pause pause(arena_.watch());
  ::kill(members_[process].pid, SIGSTOP);
  // Not before all of its threads stand still may others go on.
  int status = 0;
  ::waitpid(members_[process].pid, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) {
    members_[process].pid = 0;
    return;
  }
  stopped_ = process;
  stopped_at_ = arena_.now();
  ++arena_.shared().stops;
}

void Crew::go_on() {
  if (!stopped_) return;
  mark(*stopped_, Event::stopped, stopped_at_);  // nobody else adds to its events now
  ::kill(members_[*stopped_].pid, SIGCONT);
  stopped_.reset();
}

void Crew::go_on_all() {
  go_on();
  for (const auto& member : members_) {
    if (member.pid != 0) ::kill(member.pid, SIGCONT);
  }
}

std::uint32_t Crew::running() {
  std::uint32_t count = 0;
  for (auto& member : members_) {
    if (member.pid == 0) continue;
    int status = 0;
    const bool changed = ::waitpid(member.pid, &status, WNOHANG | WUNTRACED) != 0;
    if (!changed || WIFSTOPPED(status)) {
      ++count;
      // Whoever is stopped now would not see that it is over.
      if (changed && arena_.shared().stop) ::kill(member.pid, SIGCONT);
      continue;
    }
    member.pid = 0;
    const bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == kOk;
    if (in_order && arena_.shared().stop) continue;
    arena_.shared().stop = true;
    throw Failure(kSoftware, WIFEXITED(status)
                                 ? "a process of the simulation ended too early, with status " +
                                       std::to_string(WEXITSTATUS(status))
                                 : "a process of the simulation was ended by signal " +
                                       std::to_string(WTERMSIG(status)) +
                                       ", which nobody here has sent");
  }
  return count;
}

void work(Arena& arena, std::uint32_t process, std::uint32_t life,
          const interlock::Client& client) {
  auto& shared = arena.shared();
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  ++shared.ready;
  while (shared.started == 0 && !shared.stop) nap();
  std::stop_source stop;
  std::vector<std::jthread> threads;
  const auto count = arena.plan().threads;
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, number = process * count + i] {
      try {
        Worker(arena, number, life, client, stop.get_token()).run();
      } catch (const std::exception& error) {
        arena.fail(interlock::Error(interlock::Errc::invalid, error.what()));
      }
    });
  }
  while (!shared.stop) nap();
  stop.request_stop();
}

}  // namespace cli::simulation
