#include "core/io/loop.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/contain.hpp"
#include "core/quiet_thread.hpp"

namespace interlock::io {

namespace {

// So long the background thread leaves it to the next caller to look after an idle connection.
constexpr auto kGrace = std::chrono::milliseconds(1);
constexpr auto kLongestGrace = std::chrono::milliseconds(16);
constexpr auto kWorthSleeping = std::chrono::milliseconds(10);
// So long a busy caller may overlook what comes for others.
constexpr auto kUnseen = std::chrono::milliseconds(1);
// So long a caller looks for its answer before it sleeps, if the last one came that fast.
constexpr auto kLooking = std::chrono::microseconds(250);
// When the system refuses what it takes to lead, memory mostly.
constexpr auto kAfterRefusal = std::chrono::milliseconds(10);

}  // namespace

Loop::Loop() : never_(*system_clock()), thread_(core::quiet_thread([this] { run(); })) {
  core::call_at_exit(exit_);
}

void Loop::end_thread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  background_.notify_one();
  bell_.ring();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void Loop::stop() {
  exit_->forget();
  if (std::exchange(stopped_, true)) return;
  end_thread();
  // What was asked for may hold on to whoever owns us: it must not be ours any more.
  Finished dropped;
  std::vector<Post> posts;
  {
    const std::lock_guard lock(mutex_);
    posts.swap(posts_);
    for (const auto& connection : connections_) connection->abandon(dropped);
  }
}

void Loop::add(const Handle& connection) {
  {
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
  }
  post([](TimePoint, Finished&) {}, false);
}

void Loop::remove(const Handle& connection) {
  const std::lock_guard lock(mutex_);
  std::erase(connections_, connection);
  if (polling_) bell_.ring();
}

void Loop::post(Post what, bool urgent) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    // If nobody leads, the caller may be about to lend; or not, so the background thread has to know.
    wake = leader_ == Leader::nobody && (resting_ || urgent);
    if (urgent) ++urgent_;
    posts_.push_back(std::move(what));
    if (polling_) bell_.ring();
  }
  if (wake) background_.notify_one();
}

void Loop::lend(Signal& signal, TimePoint until) {
  Lock lock(mutex_);
  if (leader_ != Leader::nobody) {
    Lender me{.signal = &signal};
    followers_.push_back(&me);
    if (leader_ == Leader::background && urgent_ == 0 && !wanted_) {
      wanted_ = true;
      bell_.ring();
    }
    lock.unlock();
    const bool was_set = signal.wait_until(until);
    lock.lock();
    if (!me.promoted) {
      followers_.remove(&me);
      return;
    }
    if (was_set) return step_down();
  } else {
    leader_ = Leader::lender;
  }
  const Term term(*this, lock);
  lead(lock, signal, until);
}

void Loop::step_down() {
  ++turns_;
  if (!followers_.empty()) {
    Lender* next = followers_.front();
    followers_.pop_front();
    next->promoted = true;
    leader_ = Leader::lender;
    next->signal->interrupt();
    return;
  }
  leader_ = Leader::nobody;
  if (urgent_ > 0 || (resting_ && needed())) background_.notify_one();
}

void Loop::lead(Lock& lock, Signal& signal, TimePoint until) {
  Finished finished;
  while (true) {
    taken_.swap(posts_);
    alone_ = leader_ == Leader::lender && followers_.empty() && urgent_ == 0;
    const bool led = core::contain([&] {
      driven_ = connections_;
      lock.unlock();
      take_posts(BootClock::now(), finished);
      if (finished.list.empty()) wait(signal, until, finished);
    });
    if (lock.owns_lock()) lock.unlock();
    tell(finished);
    if (!led) std::this_thread::sleep_for(kAfterRefusal);
    const bool over = signal.take() || signal.time_left(until) == Duration::zero();
    const bool watched = std::any_of(driven_.begin(), driven_.end(),
                                     [](const Handle& connection) { return connection->active(); });
    driven_.clear();
    lock.lock();
    urgent_ -= std::exchange(finished.urgent, 0);
    watched_ = watched;
    if (over || (leader_ == Leader::background && (stop_ || wanted_ || !needed()))) return;
  }
}

// Those who are told often have the next request, which may already be on its way to the server while
// others are still to be told.
void Loop::tell(Finished& finished) {
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t i = 0; i < finished.list.size(); ++i) {
    const auto one = std::move(finished.list[i]);  // the list may grow meanwhile
    (void)core::contain([&] { one(); });
    if (i % kAtOnce != kAtOnce - 1) continue;
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(posts_);
    }
    if (!taken_.empty()) take_posts(BootClock::now(), finished);
  }
  finished.list.clear();
}

void Loop::take_posts(TimePoint now, Finished& finished) {
  for (const auto& post : taken_) (void)core::contain([&] { post(now, finished); });
  taken_.clear();
  for (const auto& connection : driven_)
    (void)core::contain([&] { connection->advance(now, finished); });
}

// A caller whose answer is all there is to wait for need not look at anything else, unless it is time to
// look at the others: on one of them somebody else may be told that it is his turn.
Connection* Loop::only_expected(Signal& signal, TimePoint until) const {
  Connection* expected = nullptr;
  bool others = false;
  for (const auto& connection : driven_) {
    if (connection->fd() < 0) continue;
    if (!connection->busy()) {
      others = true;
      continue;
    }
    if (expected != nullptr || !connection->expects_answer()) return nullptr;
    expected = connection.get();
  }
  if (expected == nullptr || signal.time_left(until) < kWorthSleeping) return nullptr;
  return others && BootClock::now() - looked_ > kUnseen ? nullptr : expected;
}

// To fall asleep and be woken takes longer than a server nearby takes to answer.
void Loop::wait_for_answer(Connection& connection, Finished& finished) {
  const auto asked = BootClock::now();
  for (auto now = asked; quick_ && now - asked < kLooking; now = BootClock::now()) {
    connection.ready(now, finished, false);
    if (!finished.list.empty() || connection.fd() < 0) return;
    ::sched_yield();
  }
  connection.ready(asked, finished, true);
  quick_ = BootClock::now() - asked < kLooking;
}

void Loop::wait(Signal& signal, TimePoint until, Finished& finished) {
  if (auto* const expected = alone_ ? only_expected(signal, until) : nullptr) {
    wait_for_answer(*expected, finished);
    if (!finished.list.empty()) return;
  }
  std::vector<pollfd> fds;
  fds.reserve(driven_.size() + 1);
  fds.push_back({.fd = bell_.fd(), .events = POLLIN, .revents = 0});
  auto next = TimePoint::max();
  for (const auto& connection : driven_) {
    next = std::min(next, connection->next());
    const int fd = connection->fd();
    fds.push_back({.fd = fd, .events = fd < 0 ? short{0} : connection->events(), .revents = 0});
  }
  if (!signal.arm(bell_)) return;
  {
    const std::lock_guard lock(mutex_);
    // What was posted since we looked rang no bell.
    polling_ = posts_.empty() && !(leader_ == Leader::background && (stop_ || wanted_));
  }
  int ready = 0;
  if (polling_) {
    auto left = signal.time_left(until);
    if (next != TimePoint::max())
      left = std::min(left, std::max(Duration::zero(), next - BootClock::now()));
    timespec time{};
    if (left != Duration::max()) {
      time.tv_sec = left / std::chrono::seconds(1);
      time.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    ready = ::ppoll(fds.data(), fds.size(), left == Duration::max() ? nullptr : &time, nullptr);
    looked_ = BootClock::now();
    const std::lock_guard lock(mutex_);
    polling_ = false;
  }
  signal.disarm();
  if (ready > 0) {
    const auto now = BootClock::now();
    if (fds[0].revents != 0) bell_.silence();
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0)
        (void)core::contain([&] { driven_[i - 1]->ready(now, finished, false); });
    }
  }
}

// While callers come and go it only looks now and then whether one of them still leads: to be told of
// each would cost every call a switch of threads.
void Loop::run() {
  auto grace = kGrace;
  bool calls = false;  // in the last while
  Lock lock(mutex_);
  while (!stop_) {
    const auto may_lead = [this] { return stop_ || (leader_ == Leader::nobody && needed()); };
    if (!calls && !may_lead()) {
      resting_ = true;
      background_.wait(lock, [&, turns = turns_] { return may_lead() || turns_ != turns; });
      resting_ = false;
    }
    const auto turns = turns_;
    if (!stop_ && (urgent_ == 0 || leader_ != Leader::nobody)) {
      // The next caller may be here in a moment, and would have to ask us to make way.
      background_.wait_for(lock, grace,
                           [this] { return stop_ || (urgent_ > 0 && leader_ == Leader::nobody); });
    }
    calls = turns_ != turns;
    if (stop_ || !may_lead() || (calls && urgent_ == 0)) {
      grace = std::min(grace * 2, kLongestGrace);
      continue;
    }
    leader_ = Leader::background;
    wanted_ = false;
    grace = kGrace;
    const Term term(*this, lock);
    lead(lock, never_, TimePoint::max());
  }
}

}  // namespace interlock::io
