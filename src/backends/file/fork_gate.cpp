#include "backends/file/fork_gate.hpp"

#include <pthread.h>

#include <utility>

namespace interlock::file {

namespace {

// Readers are critical sections, the writer is fork. Writers go first, or a busy process could
// never fork.
pthread_rwlock_t gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void before_fork() { pthread_rwlock_wrlock(&gate); }

void after_fork_in_parent() { pthread_rwlock_unlock(&gate); }

void after_fork_in_child() {
  pthread_rwlock_unlock(&gate);
  // And anew: it still counts the threads that waited for it, and they don't exist here.
  gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

// When the library is loaded, before any thread could fork in a critical section.
[[maybe_unused]] const int registered =
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

ForkGate::ForkGate() noexcept { pthread_rwlock_rdlock(&gate); }

ForkGate::ForkGate(ForkGate&& other) noexcept : inside_(std::exchange(other.inside_, false)) {}

ForkGate::~ForkGate() {
  if (inside_) pthread_rwlock_unlock(&gate);
}

}  // namespace interlock::file
