#include "crew.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "spawn.hpp"

namespace torture {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct Running {
  std::string program;
  pid_t parent = 0;
};

// From /proc/PID/stat: "PID (NAME) STATE PARENT …".
std::map<pid_t, Running> all_processes() {
  std::map<pid_t, Running> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    const auto open = line.find('(');
    const auto close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos || line.at(close + 2) == 'Z')
      continue;
    all[std::stoi(name)] = {line.substr(open + 1, close - open - 1),
                            std::stoi(line.substr(close + 4))};
  }
  return all;
}

bool descends(const std::map<pid_t, Running>& all, pid_t pid, pid_t from) {
  for (int depth = 0; depth < 16 && pid > 1; ++depth) {
    if (pid == from) return true;
    const auto found = all.find(pid);
    if (found == all.end()) return false;
    pid = found->second.parent;
  }
  return false;
}

}  // namespace

Crew::Crew(const RoundPlan& plan, WorkerPlan first, const Log& log)
    : plan_(plan), worker_(std::move(first)), log_(log) {
  // Commands of killed workers become children of this process.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  members_.resize(static_cast<std::size_t>(plan.processes));
  const bool has_clock = std::any_of(
      plan.environment.begin(), plan.environment.end(),
      [](const std::string& variable) { return variable.starts_with("TORTURE_CLOCK="); });
  for (std::size_t i = 0; !plan.preload.empty() && !has_clock && i < members_.size(); ++i) {
    clocks_.push_back(std::make_unique<WallClock>(plan.directory / ("clock-" + std::to_string(i))));
  }
  for (std::size_t i = 0; worker_.survives_no_memory && i < members_.size(); ++i) {
    memory_.push_back(std::make_unique<SharedNumber>(
        "TORTURE_MEMORY", plan.directory / ("memory-" + std::to_string(i))));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) start(i);
}

Crew::~Crew() {
  for (auto& member : members_) {
    if (member.pid == 0) continue;
    ::kill(member.pid, SIGKILL);
    ::waitpid(member.pid, nullptr, 0);
    ::close(member.input);
  }
}

void Crew::start(std::size_t number) {
  auto& member = members_[number];
  member.name = std::to_string(number) + "." + std::to_string(member.life++);
  worker_.name = member.name;
  std::array<int, 2> input{};
  if (::pipe2(input.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for a worker");
  auto words = worker_.self;
  words.emplace_back("worker");
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.emplace_back(*variable);
  environment.insert(environment.end(), plan_.environment.begin(), plan_.environment.end());
  if (!plan_.preload.empty()) environment.push_back("LD_PRELOAD=" + plan_.preload.string());
  if (!clocks_.empty()) environment.push_back(clocks_[number]->variable());
  if (!memory_.empty()) environment.push_back(memory_[number]->variable());
  member.pid = spawn({.program = "/proc/self/exe",
                      .words = std::move(words),
                      .environment = std::move(environment),
                      .input = input[0],
                      .errors = (plan_.directory / "workers.txt").string()});
  ::close(input[0]);
  member.input = input[1];
  if (member.pid == 0) throw std::runtime_error("a worker can't be started");
  const auto text = Json(worker_).dump() + "\n";
  if (::write(member.input, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("a worker can't be told its plan");
}

void Crew::kill(std::size_t number) {
  auto& member = members_[number];
  log_.add("killed", {{"worker", member.name}});
  ::kill(member.pid, SIGKILL);
  ::waitpid(std::exchange(member.pid, 0), nullptr, 0);
  ::close(std::exchange(member.input, -1));
}

std::vector<Fault> Crew::faults() {
  std::vector<Fault> faults;
  const auto any = [this](Random& random) { return random() % members_.size(); };
  if (worker_.across_processes) {
    const auto victim = std::make_shared<std::size_t>();
    faults.push_back({.name = "kill a worker",
                      .disturbs = false,
                      .begin =
                          [this, any, victim](Random& random) {
                            *victim = any(random);
                            const auto name = members_[*victim].name;
                            kill(*victim);
                            return "worker " + name;
                          },
                      .heal = [this, victim] { start(*victim); }});
  }
  const auto stopped = std::make_shared<std::pair<std::size_t, pid_t>>();
  faults.push_back({.name = "stop a worker",
                    .disturbs = false,
                    .begin =
                        [this, any, stopped](Random& random) {
                          const auto which = any(random);
                          const auto& member = members_[which];
                          if (member.pid == 0) throw std::runtime_error("it was killed");
                          *stopped = {which, member.pid};
                          log_.add("stopped", {{"worker", member.name}});
                          ::kill(member.pid, SIGSTOP);
                          return "worker " + member.name;
                        },
                    .heal =
                        [this, stopped] {
                          const auto& member = members_[stopped->first];
                          if (member.pid != stopped->second) return;
                          ::kill(member.pid, SIGCONT);
                          log_.add("continued", {{"worker", member.name}});
                        }});
  const auto short_of = std::make_shared<pid_t>();
  const auto limit_descriptors = [](pid_t pid, rlim_t most) {
    rlimit limits{};
    if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &limits) != 0) return;
    limits.rlim_cur = std::min(most, limits.rlim_max);
    ::prlimit(pid, RLIMIT_NOFILE, &limits, nullptr);
  };
  faults.push_back({.name = "no descriptor left in a worker",
                    .begin =
                        [this, any, short_of, limit_descriptors](Random& random) {
                          const auto& member = members_[any(random)];
                          if (member.pid == 0) throw std::runtime_error("it was killed");
                          *short_of = member.pid;
                          // Those that are open stay so.
                          limit_descriptors(member.pid, 4);
                          return "worker " + member.name;
                        },
                    .heal =
                        [this, short_of, limit_descriptors] {
                          for (const auto& member : members_) {
                            if (member.pid == *short_of)
                              limit_descriptors(member.pid, RLIM_INFINITY);
                          }
                        }});
  auto around = clock_faults();
  for (auto& fault : memory_faults()) around.push_back(std::move(fault));
  const auto and_around = [&] {
    std::move(around.begin(), around.end(), std::back_inserter(faults));
    return std::move(faults);
  };
  if (worker_.command.empty()) return and_around();
  const auto begin = [this](int signal, const std::shared_ptr<pid_t>& command) {
    return [this, command, signal](Random& random) {
      const auto all = commands();
      if (all.empty()) throw std::runtime_error("no command runs");
      *command = all[random() % all.size()];
      const auto running = all_processes();
      // Of one `interlock run` and its guardian, only one is touched: both together can't be survived.
      const auto parent = running.contains(*command) ? running.at(*command).parent : 0;
      touched_.insert(*command);
      touched_.insert(parent);
      for (const auto& [pid, process] : running) {
        if (process.parent == *command) touched_.insert(pid);
      }
      ::kill(*command, signal);
      return "process " + std::to_string(*command);
    };
  };
  faults.push_back({.name = "kill an interlock run or its guardian",
                    .disturbs = false,
                    .begin = begin(SIGKILL, std::make_shared<pid_t>()),
                    .heal = [] {}});
  const auto stopped_command = std::make_shared<pid_t>();
  faults.push_back({.name = "stop an interlock run or its guardian",
                    .disturbs = false,
                    .begin = begin(SIGSTOP, stopped_command),
                    .heal = [stopped_command] { ::kill(*stopped_command, SIGCONT); }});
  return and_around();
}

std::vector<pid_t> Crew::commands() {
  std::vector<pid_t> found;
  const auto all = all_processes();
  for (const auto& [pid, process] : all) {
    const bool worker =
        std::any_of(members_.begin(), members_.end(),
                    [&, id = pid](const Member& member) { return member.pid == id; });
    if (process.program.starts_with("interlock") && !worker && pid != ::getpid() &&
        !touched_.contains(pid) && !touched_.contains(process.parent) &&
        descends(all, pid, ::getpid()))
      found.push_back(pid);
  }
  return found;
}

void Crew::reap_orphans() {
  const auto self = std::to_string(::getpid());
  std::ifstream children("/proc/self/task/" + self + "/children");
  for (pid_t pid = 0; children >> pid;) {
    std::ifstream name("/proc/" + std::to_string(pid) + "/comm");
    std::string program;
    std::getline(name, program);
    if (program.starts_with("interlock") || program == "torture") ::waitpid(pid, nullptr, WNOHANG);
  }
}

void Crew::end(interlock::Duration patience) {
  for (auto& member : members_) {
    if (member.pid == 0) continue;
    ::kill(member.pid, SIGCONT);
    ::close(std::exchange(member.input, -1));
  }
  const auto until = now() + patience.count();
  for (auto& member : members_) {
    if (member.pid == 0) continue;
    int status = 0;
    while (::waitpid(member.pid, &status, WNOHANG) == 0) {
      if (now() > until) {
        log_.add("hung", {{"worker", member.name}});
        ::kill(member.pid, SIGKILL);
        ::waitpid(member.pid, nullptr, 0);
        status = 0;
        break;
      }
      std::this_thread::sleep_for(10ms);
    }
    if (status != 0) log_.add("crashed", {{"worker", member.name}, {"status", status}});
    member.pid = 0;
  }
  // Commands whose worker was killed run on, and end by themselves.
  while (true) {
    const auto all = all_processes();
    bool some = false;
    for (const auto& [pid, process] : all) {
      some = some || ((process.program.starts_with("interlock") || process.program == "torture") &&
                      pid != ::getpid() && descends(all, pid, ::getpid()));
    }
    reap_orphans();
    if (!some) return;
    if (now() >= until) return log_.add("left", {{"what", "a command still runs"}});
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace torture
