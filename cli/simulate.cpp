// interlock simulate: finds the program, and runs it.
#include "simulate.hpp"

#include <algorithm>
#include <array>
#include <iostream>

namespace cli {

namespace {

struct Program {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr std::array kPrograms = {
    Program{"time", "How long a lock takes that nobody else wants", simulate_time},
    Program{"speed", "Many want the same locks: who waits how long", simulate_speed},
    Program{"stress", "Everything at once, with kills, and no overlap", simulate_stress},
    Program{"escalation", "A table's lock keeps all of its rows", simulate_escalation},
    Program{"scale", "A model: more processes and locks than are here", simulate_scale},
};

void show_help() {
  std::cout << "Runs workers over a store, tells what they waited for, and checks that no two of\n"
               "them were ever where only one may be. Exit status 1 if two were.\n\n"
               "Usage: interlock simulate PROGRAM [OPTIONS]\n\nPrograms:\n";
  for (const auto& program : kPrograms) {
    const std::string name = program.name;
    std::cout << "  " << name << std::string(12 - name.size(), ' ') << program.summary << '\n';
  }
  std::cout << "\nMore: interlock simulate PROGRAM --help\n";
}

}  // namespace

int simulate(const Arguments& arguments) {
  auto inner = arguments;
  auto& words = inner.before;
  std::size_t at = 0;
  bool help = false;
  while (at < words.size() && words[at].starts_with('-')) {
    help = help || words[at] == "-h" || words[at] == "--help";
    at += takes_value(words[at]) ? 2 : 1;
  }
  if (at >= words.size()) {
    if (!help)
      throw UsageError(
          "the name of a simulation is missing: time, speed, … (see: interlock simulate --help)");
    show_help();
    return kOk;
  }
  const auto name = words[at];
  const auto* found = std::find_if(kPrograms.begin(), kPrograms.end(),
                                   [&](const Program& program) { return program.name == name; });
  if (found != kPrograms.end()) {
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    return found->run(inner);
  }
  std::vector<std::string_view> known;
  known.reserve(kPrograms.size());
  for (const auto& program : kPrograms) known.emplace_back(program.name);
  const auto nearest = interlock::detail::nearest(name, known);
  throw UsageError("there is no simulation \"" + name + "\"; " +
                   (nearest.empty() ? "see: interlock simulate --help"
                                    : "did you mean \"" + std::string(nearest) + "\"?"));
}

}  // namespace cli
