// How every background thread of ours begins: the user's signals are for the user's threads.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace interlock::core {

template <class Run>
std::thread quiet_thread(Run run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace interlock::core
