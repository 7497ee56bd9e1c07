#include "aside.hpp"

#include <poll.h>

#include <array>
#include <cstdlib>
#include <iostream>

namespace cli {

namespace {

constexpr int kMoment = 300;  // milliseconds

}  // namespace

Aside::Aside() : thread_([this] { work(); }) {}

Aside::~Aside() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Aside::start(std::function<void()> task) {
  busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_all();
}

bool Aside::finish() {
  if (!busy_) return false;
  pollfd done{.fd = done_.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&done, 1, 0) <= 0) return false;
  done_.quiet();
  busy_ = false;
  if (auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
  return true;
}

bool Aside::wait(int until) const {
  std::array<pollfd, 2> fds{{{.fd = done_.fd(), .events = POLLIN, .revents = 0},
                             {.fd = until, .events = POLLIN, .revents = 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  return fds[0].revents != 0;
}

int Aside::end(int status) {
  pollfd done{.fd = done_.fd(), .events = POLLIN, .revents = 0};
  if (!busy_ || ::poll(&done, 1, kMoment) > 0) return status;
  std::cout << std::flush;
  std::_Exit(status);  // nothing is held here, and nothing is lost
}

void Aside::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || task_; });
    if (!task_) return;
    const auto task = std::exchange(task_, nullptr);
    lock.unlock();
    try {
      task();
    } catch (...) {
      failure_ = std::current_exception();
    }
    done_.ring();
    lock.lock();
  }
}

}  // namespace cli
