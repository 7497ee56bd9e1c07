// The recipes, the command, and what is done to the locks of others.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hand.hpp"
#include "interlock/leader_election.hpp"
#include "interlock/mutex.hpp"
#include "interlock/single_flight.hpp"
#include "interlock/task_queue.hpp"
#include "no_memory.hpp"
#include "spawn.hpp"

namespace torture {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

Json held_exclusively(const std::string& lease, const std::string& op, const std::string& resource,
                      std::int64_t asked) {
  const auto at = now();
  return {{"t", at},        {"lease", lease}, {"op", op},         {"owner", ""},
          {"identity", ""}, {"r", resource},  {"m", "exclusive"}, {"n", 1},
          {"c", 0},         {"asked", asked}, {"adopted", false}, {"until", at}};
}

}  // namespace

void Hand::lead() {
  const auto op = worker_.next_op();
  const auto resource = "leader:" + prefix_ + "election";
  const auto ttl = some_ttl();
  worker_.log.add(
      "ask", {{"op", op}, {"hand", number_}, {"verb", "lead"}, {"via", "recipe"}, {"lease", ""}});
  // The election calls these one at a time.
  struct State {
    int terms = 0;
    std::int64_t asked = now();
    std::atomic<bool> leads = false;
    std::string lease{};
  };
  const auto state = std::make_shared<State>();
  {
    interlock::LeaderElection election(
        worker_.client, prefix_ + "election",
        {.ttl = ttl,
         .on_gain =
             [this, state, op, resource](interlock::Fence term) {
               const Exempt me;
               state->lease = op + "#" + std::to_string(++state->terms);
               auto line = held_exclusively(state->lease, op, resource, state->asked);
               line["fence"] = term.value;
               worker_.log.add("holds", std::move(line));
               state->leads = true;
             },
         .on_loss =
             [this, state, resource](const std::string&) {
               const Exempt me;
               state->leads = false;
               worker_.log.add("leaves", {{"lease", state->lease}, {"r", resource}});
               state->asked = now();
             }});
    election.start();
    const auto until = now() + static_cast<std::int64_t>(below(1'000'000'000));
    std::string lease;
    while (now() < until && !worker_.ending.stop_requested()) {
      sleep(5ms);
      if (!state->leads) continue;
      const auto at = now();
      const auto term = election.term();
      // on_loss comes after is_leader() has turned, and the lease's name changes before on_gain is through.
      if (term && election.is_leader())
        worker_.log.add(
            "valid",
            {{"t", at}, {"lease", op + "#" + std::to_string(state->terms)}, {"until", at}});
    }
  }
  told(op, "yes");
}

void Hand::claim_task() {
  const auto asked = now();
  const auto op = worker_.next_op();
  worker_.log.add(
      "ask", {{"op", op}, {"hand", number_}, {"verb", "claim"}, {"via", "recipe"}, {"lease", ""}});
  try {
    const interlock::TaskQueue queue(worker_.client, prefix_ + "tasks", {.ttl = some_ttl()});
    auto task = queue.claim_any({"a", "b", "c"});
    told(op, task ? "yes" : "no");
    if (!task) return;
    Grip grip(worker_.log, task->lease(), {{.resource = task->lease().resource()}},
              {.op = op, .id = op, .identity = {}, .asked = asked});
    worker_.watch.add(grip);
    if (chance(0.5)) update(grip, task->lease(), task->lease().resource());
    pause(50ms);
    worker_.watch.remove(grip);
    grip.leave();
    verb("release", op,
         [&] { return std::string(to_string(chance(0.5) ? task->done() : task->give_back())); });
  } catch (const interlock::Error& error) {
    told(op, error);
  }
}

void Hand::fly() {
  const auto op = worker_.next_op();
  const auto key = "flight" + std::to_string(below(2));
  const auto file = worker_.plan.directory / key;
  const interlock::Cache cache{.get = [&](const std::string&) -> std::optional<std::string> {
                                 const Exempt me;
                                 std::ifstream in(file);
                                 std::stringstream text;
                                 if (!in || !(text << in.rdbuf())) return std::nullopt;
                                 return text.str();
                               },
                               .put =
                                   [&](const std::string&, const std::string& value) {
                                     const Exempt me;
                                     const auto draft = file.string() + "." + std::to_string(now());
                                     std::ofstream(draft) << value;
                                     fs::rename(draft, file);
                                   },
                               .remove = [&](const std::string&) { fs::remove(file); }};
  int runs = 0;
  const auto asked = now();
  const auto resource = prefix_ + "single-flight:" + key;
  // While its stop token does not fire, the generator may rely on being the only one.
  const auto generate = [&](const std::string&, const std::stop_token& stop) -> std::string {
    const Exempt me;
    const auto lease = op + "#" + std::to_string(++runs);
    if (!stop.stop_requested())
      worker_.log.add("holds", held_exclusively(lease, op, resource, asked));
    const auto until = now() + static_cast<std::int64_t>(below(100'000'000));
    while (now() < until) {
      const auto at = now();
      if (stop.stop_requested()) break;
      worker_.log.add("valid", {{"t", at}, {"lease", lease}, {"until", at}});
      std::this_thread::sleep_for(3ms);
    }
    worker_.log.add("leaves", {{"lease", lease}, {"r", resource}});
    return "a value";
  };
  worker_.log.add(
      "ask", {{"op", op}, {"hand", number_}, {"verb", "fly"}, {"via", "recipe"}, {"lease", ""}});
  try {
    interlock::SingleFlight flight(
        worker_.client, cache, generate,
        {.prefix = prefix_ + "flights:", .ttl = some_ttl(), .max_wait = 5s});
    if (chance(0.5)) {
      flight.remove(key);
    } else {
      (void)flight.get(key, worker_.ending.get_token());
    }
    told(op, "yes");
  } catch (const interlock::Error& error) {
    // A worker that ends cancels it.
    if (worker_.ending.stop_requested()) worker_.log.add("cancel", {{"op", op}});
    told(op, error);
  } catch (const std::bad_alloc&) {
    told(op, "no memory");
  }
}

void Hand::run_command() {
  const auto op = worker_.next_op();
  const auto resource = name("command", 2);
  const auto asked = std::to_string(now());
  const auto ttl = std::to_string(std::max<interlock::Duration>(some_ttl(), 500ms) / 1ms) + "ms";
  const auto self = fs::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words{worker_.plan.command.string(),
                                 "run",
                                 "--quiet",
                                 "--ttl",
                                 ttl,
                                 "--wait",
                                 "2s",
                                 resource,
                                 "--",
                                 self};
  words.insert(words.end(), worker_.plan.self.begin() + 1, worker_.plan.self.end());
  const auto lasts = std::to_string(below(1'500));
  const std::vector<std::string> touch{
      "touch", worker_.plan.directory.string(), op, resource, asked, lasts};
  words.insert(words.end(), touch.begin(), touch.end());

  worker_.log.add(
      "ask", {{"op", op}, {"hand", number_}, {"verb", "run"}, {"via", "command"}, {"lease", ""}});
  const auto pid =
      spawn({.program = words[0],
             .words = words,
             .environment = {{"INTERLOCK_URL=" + worker_.plan.url, "PATH=/usr/bin:/bin"}},
             .errors = (worker_.plan.directory / "commands.txt").string()});
  if (pid == 0) return told(op, "not started");
  const int status = wait_for_end(pid);
  worker_.log.add(
      "told",
      {{"op", op},
       {"answer", WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "killed"}});
}

void Hand::adopt() {
  // Takes one of the tokens that lie about.
  for (const auto& entry : fs::directory_iterator(worker_.plan.directory)) {
    const auto from = entry.path().string();
    if (!entry.path().filename().string().starts_with("token-") || from.ends_with(".new")) continue;
    const auto op = worker_.next_op();
    const auto mine = (worker_.plan.directory / "adopted-").string() + std::to_string(random_());
    std::error_code gone;
    fs::rename(from, mine, gone);
    if (gone) continue;
    std::string token;
    std::ifstream(mine) >> token;
    fs::remove(mine, gone);
    const auto asked = now();
    worker_.log.add(
        "ask", {{"op", op}, {"hand", number_}, {"verb", "adopt"}, {"via", "call"}, {"lease", op}});
    try {
      auto lease = worker_.client.adopt(token);
      told(op, "yes");
      std::vector<interlock::Part> parts;
      for (const auto& resource : lease.resources())
        parts.push_back({.resource = resource, .mode = lease.mode(resource)});
      // How many slots it has is not known here: one at least.
      for (auto& part : parts) part.capacity = part.mode == interlock::Mode::slots ? 3 : 0;
      Grip grip(
          worker_.log, lease, parts,
          {.op = op, .id = op, .identity = lease.who().identity, .asked = asked, .adopted = true});
      worker_.watch.add(grip);
      pause(100ms);
      worker_.watch.remove(grip);
      give_back(grip, lease);
    } catch (const interlock::Error& error) {
      told(op, error);
    }
    return;
  }
}

void Hand::break_something() {
  const auto resource = name("m", 3);
  const auto op = begin("break", "");
  try {
    const auto snapshot = worker_.client.inspect({.resources = {resource}});
    if (snapshot.resources.empty() || snapshot.resources.front().holders.empty())
      return told(op, "no");
    const auto owner = snapshot.resources.front().holders.front().owner;
    worker_.log.add("breaks", {{"r", resource}, {"owner", owner.brief()}});
    told(op, worker_.client.evict(resource, owner) ? "yes" : "no");
  } catch (const interlock::Error& error) {
    told(op, error);
  }
}

void Hand::fork_and_use() {
  interlock::Mutex mutex(worker_.client, name("m", 3), {.ttl = some_ttl()});
  verb("fork", "", [&] {
    const auto child = ::fork();
    if (child == 0) {
      int status = 1;
      try {
        const auto attempt = mutex.try_acquire();
      } catch (const interlock::Error& error) {
        status = error.errc() == interlock::Errc::forked ? 0 : 2;
      }
      ::_exit(status);
    }
    const int status = child > 0 ? wait_for_end(child) : 0;
    // Nobody is at fault if the system had no room for a child.
    const bool well = child < 0 || WIFSIGNALED(status) || WEXITSTATUS(status) == 0;
    return well ? std::string("yes") : "status " + std::to_string(status);
  });
}

}  // namespace torture
