// flooder URL DIRECTORY CYCLES SEED: takes one of four locks, again and again, and each time enters
// and leaves a register in DIRECTORY that knows who is inside and the highest fence it has seen.
// Says what is wrong and ends with 1 if somebody else is inside, or if a fence did not rise.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "interlock/interlock.hpp"

namespace {

struct Entry {
  std::uint64_t fence;
  std::int64_t pid;
  std::int64_t inside;
};

[[noreturn]] void wrong(const std::string& what) {
  std::puts(what.c_str());
  std::fflush(stdout);
  _exit(1);
}

bool alive(std::int64_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  const char state = text.at(name_end + 2);
  return state != 'Z' && state != 'X';
}

// One look at the register and one change of it, alone.
template <class Step>
void at_register(const std::string& path, Step step) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || flock(file, LOCK_EX) != 0) wrong("can't open " + path);
  Entry entry{};
  if (pread(file, &entry, sizeof entry, 0) < 0) wrong("can't read " + path);
  step(entry);
  if (pwrite(file, &entry, sizeof entry, 0) != sizeof entry) wrong("can't write " + path);
  close(file);
}

void visit(const std::string& path, std::uint64_t fence, std::chrono::microseconds stay) {
  const auto me = static_cast<std::int64_t>(getpid());
  at_register(path, [&](Entry& entry) {
    if (entry.inside != 0 && alive(entry.pid)) {
      wrong("overlap: " + std::to_string(entry.pid) + " is inside " + path);
    }
    if (fence <= entry.fence) wrong("the fence of " + path + " did not rise");
    entry = {fence, me, 1};
  });
  std::this_thread::sleep_for(stay);
  at_register(path, [&](Entry& entry) {
    if (entry.pid != me || entry.fence != fence) wrong("overlap: somebody entered " + path);
    entry.inside = 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const auto locks = interlock::connect(argv[1]);
  const std::string directory = argv[2];
  std::mt19937_64 random(std::strtoull(argv[4], nullptr, 10));
  for (int i = std::atoi(argv[3]); i > 0; --i) {
    const auto name = "flood:" + std::to_string(random() % 4);
    const interlock::Mutex mutex(locks, name);
    auto lease = mutex.acquire();
    visit(directory + "/" + name, lease.fence().value, std::chrono::microseconds(random() % 300));
    if (random() % 2 == 0) lease.release();  // else the destructor does
  }
}
