// terminated URL NAME [hangs | throws]: takes the lock, says "held", and ends in order when it gets SIGTERM. "cancelled": its
// wait was. hangs: a callback of the token does not return. throws: it waits in acquire(). URL "-": takes nothing, and does
// what NAME says.
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string>

#include "interlock/interlock.hpp"
#include "say.hpp"

// A forked child leaves its parent's threads alone, which looks like a leak.
extern "C" const char* __lsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_options() { return "detect_leaks=0"; }

namespace {

void sleep_until(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any over;
  std::unique_lock lock(mutex);
  over.wait(lock, stop, [] { return false; });
}

std::string ended(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

// A child that is started as the header says gets SIGTERM.
void start_a_program(const interlock::Termination& termination) {
  const auto child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &termination.original_mask(), nullptr);
    execl("/bin/sh", "sh", "-c", "kill -TERM $$; exit 3", nullptr);
    _exit(127);
  }
  say("program " + ended(child));
}

// Waits in acquire(), which has no value to return when its wait ends early.
int acquire(const interlock::Mutex& mutex, const interlock::Termination& termination) {
  try {
    const auto lease = mutex.acquire(termination.token());
    say("held");
    sleep_until(termination.token());
    return 0;
  } catch (const interlock::Error& error) {
    say("threw " + error.code().message());
    return 3;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string name = argv[2];
  if (name == "ignored") std::signal(SIGINT, SIG_IGN);
  const interlock::Termination termination;
  if (name == "ignored") {
    kill(getpid(), SIGINT);
    sigset_t pending;
    sigpending(&pending);
    say(sigismember(&pending, SIGINT) == 0 && !termination.requested() ? "ignored" : "heard");
  } else if (name == "exec") {
    start_a_program(termination);
  } else if (name == "fork") {
    const auto child = fork();
    if (child == 0) return 7;  // destroys its copy
    say("child " + ended(child));
  }
  if (std::string(argv[1]) == "-") return 0;

  const std::string how = argc > 3 ? argv[3] : "";
  const bool hangs = how == "hangs";
  const std::stop_callback stuck(termination.token(), [hangs] {
    if (!hangs) return;
    say("hangs");
    while (true) pause();
  });
  const interlock::Mutex mutex(interlock::connect(argv[1]), name,
                               {.ttl = std::chrono::minutes(10)});
  if (how == "throws") return acquire(mutex, termination);
  auto attempt = mutex.try_acquire_for(std::chrono::hours(1), termination.token());
  if (!attempt) {
    say(std::string(to_string(attempt.outcome())));
    return 2;
  }
  say("held");
  sleep_until(termination.token());
}
