// adder URL NAME FILE COUNT: adds one to the number in FILE, so many times, not atomically, each
// time under the lock.
#include <fstream>
#include <string>

#include "interlock/interlock.hpp"

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const interlock::Mutex mutex(interlock::connect(argv[1]), argv[2]);
  for (int i = std::stoi(argv[4]); i > 0; --i) {
    const auto lease = mutex.acquire();
    long number = 0;
    std::ifstream(argv[3]) >> number;
    std::ofstream(argv[3]) << number + 1;
  }
}
