// /proc/PID/stat. Most of it is the kernel's, but a process gives itself any name.
#include <sys/types.h>

#include "backends/file/process.hpp"
#include "fuzz.hpp"
#include "process_group.hpp"

void fuzz::run(std::string_view input) {
  (void)interlock::file::parse_stat(input);
  (void)cli::parse_stat(std::string(input));
  const std::string name(input.substr(0, 64));
  const auto line =
      "4711 (" + name + ") S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 98765 1 2 3";
  const auto stat = interlock::file::parse_stat(line);
  require(stat && stat->state == 'S' && stat->threads == 3 && stat->born == 98765,
          "a process is known whatever it calls itself");
  if (name.find('\0') != name.npos) return;
  const auto member = cli::parse_stat(line);
  require(member.state == 'S' && member.group == 77, "so is its group");
}
