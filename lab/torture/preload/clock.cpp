// Preloaded into a program: its wall clock is so many seconds ahead as the file $TORTURE_CLOCK says (8 bytes, native),
// at once whenever that changes. With $TORTURE_CLOCK_STANDS, the clock stands still at as many microseconds since 1970
// as that file says. Nothing here allocates memory or looks for symbols, as allocators ask for the time
// before they are ready, which libfaketime does not survive.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

using Number = std::atomic<std::int64_t>;

// Null: there is no such file, and the clock is the right one.
const Number* number_in_file() {
  static std::atomic<const Number*> known = nullptr;
  const auto* number = known.load();
  if (number != nullptr) return number;
  const auto* path = std::getenv("TORTURE_CLOCK");
  if (path == nullptr) return nullptr;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  auto* where = ::mmap(nullptr, sizeof(Number), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (where == MAP_FAILED) return nullptr;
  number = static_cast<const Number*>(where);
  known = number;
  return number;
}

bool stands() {
  static std::atomic<int> known = -1;
  if (known < 0) known = std::getenv("TORTURE_CLOCK_STANDS") != nullptr ? 1 : 0;
  return known == 1;
}

void set_wall_clock(timespec& now) {
  constexpr std::int64_t kMicroseconds = 1000000;
  const auto* number = number_in_file();
  if (number == nullptr) return;
  const auto value = number->load();
  if (stands()) {
    now = {.tv_sec = value / kMicroseconds, .tv_nsec = value % kMicroseconds * 1000};
  } else {
    now.tv_sec += value;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    set_wall_clock(*now);
  return result;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
