// Preloaded into a program: its wall clock is so many seconds ahead as the file $TORTURE_CLOCK says (8 bytes, native),
// at once whenever that changes. Nothing here allocates memory or looks for symbols, as allocators ask for the time
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

using Ahead = std::atomic<std::int64_t>;

std::int64_t seconds_ahead() {
  static std::atomic<const Ahead*> known = nullptr;
  const auto* ahead = known.load();
  if (ahead == nullptr) {
    const auto* path = std::getenv("TORTURE_CLOCK");
    if (path == nullptr) return 0;
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    auto* where = ::mmap(nullptr, sizeof(Ahead), PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (where == MAP_FAILED) return 0;
    ahead = static_cast<const Ahead*>(where);
    known = ahead;
  }
  return ahead->load();
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += seconds_ahead();
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
