// candidate URL CLUSTER TTL: campaigns in the background; says "leads TERM" and "over WHY". Told
// "leader", it says whether it leads; "exit" ends it in order.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "interlock/interlock.hpp"

namespace {

void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  interlock::LeaderElection election(
      interlock::connect(argv[1]), argv[2],
      {.ttl = interlock::parse_duration(argv[3]),
       .on_gain = [](interlock::Fence term) { say("leads " + std::to_string(term.value)); },
       .on_loss = [](const std::string& why) { say("over " + why); }});
  election.start();
  std::string command;
  while (std::getline(std::cin, command)) {
    if (command == "leader") say(std::string("leader ") + (election.is_leader() ? "yes" : "no"));
    if (command == "exit") return 0;
  }
}
