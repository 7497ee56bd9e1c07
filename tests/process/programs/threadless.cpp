// threadless URL: a client in a process that may start no further thread, and later may. Says what each call comes to.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "interlock/interlock.hpp"
#include "process/programs/say.hpp"

using namespace std::chrono_literals;

namespace {

void allow_threads(bool allowed) {
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = allowed ? limit.rlim_max : 1;
  setrlimit(RLIMIT_NPROC, &limit);
}

template <class Call>
void tell(const std::string& name, const Call& call) {
  try {
    call();
    say(name + " no error");
  } catch (const interlock::Error& error) {
    say(name + " " + error.what());
  } catch (const std::exception& error) {
    say(name + " a plain " + error.what());
  }
}

std::size_t known(const interlock::Client& locks) { return locks.inspect().resources.size(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  // The limit does not bind root.
  constexpr uid_t kNobody = 65534;
  if (::getuid() == 0 && ::setuid(kNobody) != 0) return 77;

  const auto locks = interlock::connect(argv[1]);
  const interlock::Mutex mutex(locks, "r", {.ttl = 1h});
  std::promise<bool> called;
  const auto call_back = [&called](interlock::Attempt attempt) {
    called.set_value(static_cast<bool>(attempt));
  };
  allow_threads(false);
  tell("acquire", [&] { (void)mutex.try_acquire(); });
  tell("callback", [&] { mutex.acquire(interlock::Wait::once(), call_back); });
  say("known " + std::to_string(known(locks)));
  allow_threads(true);
  auto lease = mutex.acquire();
  allow_threads(false);
  tell("release", [&] { lease.async_release([](auto) {}); });
  say("known " + std::to_string(known(locks)));
  say("released " + std::to_string(lease.release() == interlock::LeaseState::released));
  allow_threads(true);
  mutex.acquire(interlock::Wait::once(), call_back);  // a second call would end the program
  say("called " + std::to_string(called.get_future().get()));
  return 0;
}
