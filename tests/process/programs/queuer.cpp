// queuer URL NAME LOG ID: waits for the lock once, and writes to LOG when it is in and when it
// leaves.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "interlock/interlock.hpp"

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const auto lease = interlock::Mutex(interlock::connect(argv[1]), argv[2]).acquire();
  const auto note = [&](const char* what) {
    std::ofstream(argv[3], std::ios::app) << what << ' ' << argv[4] << std::endl;
  };
  note("enters");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  note("leaves");
}
