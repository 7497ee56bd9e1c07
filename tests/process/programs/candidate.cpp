// candidate URL CLUSTER TTL: campaigns in the background; says "leads TERM" and "over WHY". Told
// "leader", it says whether it leads; "fork" makes a child that looks, too; "exit" ends it in order.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "interlock/interlock.hpp"
#include "say.hpp"

// A forked child leaves its parent's client alone, which looks like a leak.
extern "C" const char* __lsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_options() { return "detect_leaks=0"; }

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  auto election = std::make_unique<interlock::LeaderElection>(
      interlock::connect(argv[1]), argv[2],
      interlock::ElectionOptions{
          .ttl = interlock::parse_duration(argv[3]),
          .on_gain = [](interlock::Fence term) { say("leads " + std::to_string(term.value)); },
          .on_loss = [](const std::string& why) { say("over " + why); }});
  const auto leads = [&] { return std::string(election->is_leader() ? "yes" : "no"); };
  election->start();
  std::string command;
  while (std::getline(std::cin, command)) {
    if (command == "leader") say("leader " + leads());
    if (command == "fork") {
      const auto child = fork();
      if (child == 0) {
        say("child " + leads());
        election.reset();
        std::exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      say("forked " + std::to_string(status));
    }
    if (command == "exit") return 0;
  }
}
