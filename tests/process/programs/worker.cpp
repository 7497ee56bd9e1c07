// worker URL QUEUE ID TTL AT_LEAST_FOR: claims the task and says "claimed"; told "done", it says so and
// ends in order.
#include <iostream>
#include <string>

#include "interlock/interlock.hpp"
#include "say.hpp"

int main(int argc, char** argv) {
  if (argc < 6) return 64;
  const interlock::TaskQueue queue(interlock::connect(argv[1]), argv[2],
                                   {.ttl = interlock::parse_duration(argv[4]),
                                    .at_least_for = interlock::parse_duration(argv[5])});
  auto task = queue.claim(argv[3]);
  say(task ? "claimed" : "taken");
  std::string command;
  while (task && std::getline(std::cin, command)) {
    if (command != "done") continue;
    say("done " + std::string(to_string(task->done())));
    return 0;
  }
}
