#include "backends/etcd/leases.hpp"

#include <algorithm>

namespace interlock::etcd {

namespace {

using std::chrono::seconds;

constexpr std::int64_t kShortest = 10;
// A lease that nobody uses is kept for a while, for the next one to come.
constexpr Duration kIdle = std::chrono::minutes(2);

constexpr std::int64_t kWaiterSeconds = std::chrono::floor<seconds>(Leases::kWaiters).count();

// 10, 15, 20, 30, 40, 60, 80, … seconds: few lengths, each at least half as long again as the TTL.
std::int64_t length_for(Duration ttl) {
  const auto least = std::chrono::ceil<seconds>(ttl + ttl / 2).count();
  std::int64_t length = kShortest;
  while (length < least) {
    if (length + length / 2 >= least) return length + length / 2;
    length *= 2;
  }
  return length;
}

}  // namespace

void Leases::for_holder(Duration ttl, Call call, Use use) {
  get(length_for(ttl), ttl, call, std::move(use));
}

void Leases::for_waiter(Call call, Use use) {
  get(kWaiterSeconds, Leases::kWaiters, call, std::move(use));
}

LeaseId Leases::at_hand(std::int64_t length, Duration ttl) {
  const auto now = BootClock::now();
  auto& lease = leases_[length];
  lease.used = now;
  // Places in line are on the waiters' one: it stays in use, if etcd still knows it.
  return length == kWaiterSeconds || now + ttl < lease.until ? lease.id : 0;
}

LeaseId Leases::waiters() {
  const std::lock_guard lock(mutex_);
  return at_hand(kWaiterSeconds, Leases::kWaiters);
}

void Leases::get(std::int64_t length, Duration ttl, Call call, Use use) {
  LeaseId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = at_hand(length, ttl);
    if (id == 0) {
      auto& lease = leases_[length];
      if (std::exchange(lease.on_its_way, true)) {
        call.caller_waits = false;  // another thread will come back to it
        lease.queue.push_back({ttl, call, std::move(use)});
        return;
      }
    }
  }
  if (id != 0) return use({.id = id}, call);
  wire::LeaseGrantRequest request;
  request.set_ttl(length);
  rpc_.grant_lease(std::move(request), call,
                   [this, length, sent = BootClock::now(), use = std::move(use)](
                       const Outcome<wire::LeaseGrantResponse>& outcome, Call now_on) {
                     granted(length, sent, outcome, now_on, use);
                   });
}

void Leases::granted(std::int64_t length, TimePoint sent,
                     const Outcome<wire::LeaseGrantResponse>& outcome, Call call, const Use& use) {
  std::vector<Lease::Waiting> queue;
  {
    const std::lock_guard lock(mutex_);
    auto& lease = leases_[length];
    lease.on_its_way = false;
    queue.swap(lease.queue);
    if (!outcome.failure) {
      lease.id = outcome.response.id();
      lease.length = seconds(outcome.response.ttl());
      lease.asked = sent;
      lease.until = sent + lease.length;
    }
  }
  // The others go first: this thread's own one may take its time. If there is no lease, each of
  // them asks for itself, as it may have more time than this one had.
  for (auto& other : queue) get(length, other.ttl, other.call, std::move(other.use));
  use({.id = outcome.response.id(), .failure = outcome.failure}, call);
}

// Those whose time is over; if there are none, all but the waiters', with which they would lose their
// places; or else that one, too.
void Leases::forget_one_of(const std::vector<LeaseId>& ids, bool again) {
  const std::lock_guard lock(mutex_);
  const auto now = BootClock::now();
  std::vector<std::pair<std::int64_t, Lease*>> used;
  for (auto& [length, lease] : leases_) {
    if (lease.id != 0 && std::find(ids.begin(), ids.end(), lease.id) != ids.end())
      used.emplace_back(length, &lease);
  }
  const auto over = [now](const auto& item) { return item.second->until < now; };
  const bool one_is_over = std::any_of(used.begin(), used.end(), over);
  for (const auto& item : used) {
    if (one_is_over ? over(item) : again || item.first != kWaiterSeconds) item.second->id = 0;
  }
}

void Leases::tick() {
  const auto now = BootClock::now();
  std::vector<LeaseId> due;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(leases_, [&](const auto& item) {
      const auto& lease = item.second;
      return !lease.on_its_way && lease.used + std::max(lease.length, kIdle) < now;
    });
    for (auto& [length, lease] : leases_) {
      if (lease.id == 0 || now < lease.asked + lease.length / 6) continue;
      // What was asked before may still be answered: it counts from the earlier time.
      if (!lease.waiting_since) lease.waiting_since = now;
      lease.asked = now;
      due.push_back(lease.id);
    }
  }
  if (due.empty()) return;
  if (!stream_) {
    stream_ = rpc_.keep_alive(
        [this](const wire::LeaseKeepAliveResponse& response) { kept_alive(response); },
        [this] { stream_ended(); });
  }
  for (const auto id : due) {
    wire::LeaseKeepAliveRequest request;
    request.set_id(id);
    stream_->send(std::move(request));
  }
}

void Leases::kept_alive(const wire::LeaseKeepAliveResponse& response) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(leases_.begin(), leases_.end(),
                                 [&](const auto& item) { return item.second.id == response.id(); });
    if (it == leases_.end()) return;
    auto& lease = it->second;
    if (response.ttl() > 0) {
      if (lease.waiting_since)
        lease.until = std::max(lease.until, *lease.waiting_since + seconds(response.ttl()));
      lease.waiting_since.reset();
      return;
    }
    lease.id = 0;
  }
  lost_(response.id());
}

void Leases::stream_ended() {
  stream_.reset();
  const std::lock_guard lock(mutex_);
  for (auto& [length, lease] : leases_) lease.waiting_since.reset();
}

}  // namespace interlock::etcd
