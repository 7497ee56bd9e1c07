#include "backends/file/background.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/contain.hpp"
#include "core/quiet_thread.hpp"

namespace interlock::file {

namespace {

constexpr Duration kFirstPause = std::chrono::microseconds(500);
constexpr Duration kLongestPause = std::chrono::milliseconds(10);
/// In one critical section; others want their turn, too.
constexpr std::size_t kTogether = 1024;

}  // namespace

Background::Background(Store& store)
    : store_(store), kick_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!kick_) throw store.directory().failure("can't make an event descriptor", errno);
}

void Background::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  kick();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    silent_ = true;
    store_.silence();
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Background::push(Job job) {
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(job));
    start();
  }
  kick();
}

void Background::push(InspectionJob job) {
  {
    const std::lock_guard lock(mutex_);
    incoming_inspections_.push_back(std::move(job));
    start();
  }
  kick();
}

void Background::attend() {
  if (!store_.has_news()) return;
  {
    const std::lock_guard lock(mutex_);
    start();
  }
  kick();
}

void Background::start() {
  if (thread_.joinable()) return;
  thread_ = core::quiet_thread([this, all = keep_alive_.lock()] { run(); });
  pthread_setname_np(thread_.native_handle(), "interlock-file");
}

void Background::kick() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(kick_.get(), &one, sizeof one);
}

void Background::run() {
  Duration pause = kFirstPause;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    const bool served = core::contain([&] {
      take_incoming();
      const bool progress = serve();
      const bool idle = waiting_.empty() && inspections_.empty();
      pause = progress || idle ? kFirstPause : std::min(pause * 2, kLongestPause);
      listen(idle ? Duration::max() : pause);
    });
    if (!served) std::this_thread::sleep_for(kLongestPause);
  }
  (void)core::contain([&] {
    take_incoming();
    serve();
    give_up();
  });
}

// Sleeps until somebody calls, rings, or dies.
void Background::listen(Duration longest) {
  std::vector<Owner> rings;
  std::vector<pollfd> polled{{.fd = kick_.get(), .events = POLLIN, .revents = 0},
                             {.fd = store_.doorbell().fd(), .events = POLLIN, .revents = 0}};
  store_.waiters().watch(BootClock::now() - 2 * Store::kTicketTtl, polled, rings);
  if (!rings.empty()) longest = Duration::zero();
  const timespec timeout{.tv_sec = longest / std::chrono::seconds(1),
                         .tv_nsec = (longest % std::chrono::seconds(1)).count()};
  const int ready = ::ppoll(polled.data(), polled.size(),
                            longest == Duration::max() ? nullptr : &timeout, nullptr);
  if (ready > 0) {
    std::uint64_t ignored = 0;
    if (polled[0].revents != 0) {
      [[maybe_unused]] const auto got = ::read(kick_.get(), &ignored, sizeof ignored);
    }
    if (polled[1].revents != 0) {
      const auto heard = store_.doorbell().listen();
      const auto& owners = heard.missed ? store_.waiters().all() : heard.owners;
      rings.insert(rings.end(), owners.begin(), owners.end());
    }
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) store_.waiters().ended(polled[i].fd, rings);
    }
  }
  store_.ring(rings);
}

void Background::take_incoming() {
  std::vector<Job> jobs;
  std::vector<InspectionJob> inspections;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(incoming_);
    inspections.swap(incoming_inspections_);
  }
  for (auto& job : jobs) {
    auto& queue = waiting_[job.operation.shards];
    queue.push_back(std::move(job));
  }
  std::move(inspections.begin(), inspections.end(), std::back_inserter(inspections_));
}

// True if anything was done.
bool Background::serve() {
  bool progress = false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    progress = serve(it->second) || progress;
    it = it->second.empty() ? waiting_.erase(it) : std::next(it);
  }
  for (auto it = inspections_.begin(); it != inspections_.end();) {
    ShardId blocker = 0;
    if (!store_.attempt(it->inspection, blocker)) {
      if (BootClock::now() < it->deadline) {
        ++it;
        continue;
      }
      it->inspection.snapshot = {.resources = {},
                                 .why = store_.locked_out(blocker, it->deadline - it->asked)};
    }
    const auto job = std::move(*it);
    it = inspections_.erase(it);
    if (!silent_) job.report(job.inspection.snapshot);
    progress = true;
  }
  return progress;
}

bool Background::serve(std::deque<Job>& jobs) {
  ShardId blocker = jobs.front().operation.shards.front();
  const auto now = BootClock::now();
  // Nobody listens any more, and a claim that is made too late would be nobody's.
  const auto first_late = std::stable_partition(jobs.begin(), jobs.end(),
                                                [&](const Job& job) { return job.deadline > now; });
  const std::vector<Job> late(std::make_move_iterator(first_late),
                              std::make_move_iterator(jobs.end()));
  jobs.erase(first_late, jobs.end());
  bool progress = !late.empty();
  while (!jobs.empty()) {
    std::vector<Operation*> batch;
    for (auto& job : jobs) {
      if (batch.size() == kTogether) break;
      batch.push_back(&job.operation);
    }
    if (!store_.attempt(batch, blocker)) break;
    progress = true;
    const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(batch.size());
    const std::vector<Job> done(std::make_move_iterator(jobs.begin()),
                                std::make_move_iterator(end));
    jobs.erase(jobs.begin(), end);
    for (const auto& job : done) answer(job, job.operation.answer);
  }
  for (const auto& job : late) {
    answer(job, Answer::failed(store_.locked_out(blocker, job.deadline - job.asked)));
  }
  return progress;
}

void Background::give_up() {
  const Error closed(Errc::unreachable, "the client was closed before the store could be asked",
                     {.resource = {}, .node = store_.directory().where(), .maybe_held = false});
  for (auto& [shards, jobs] : waiting_) {
    for (const auto& job : jobs) answer(job, Answer::failed(closed));
  }
  for (const auto& job : inspections_) {
    if (!silent_) job.report({.resources = {}, .why = closed});
  }
}

void Background::answer(const Job& job, Answer answer) const {
  if (!silent_) job.reply(std::move(answer));
}

}  // namespace interlock::file
