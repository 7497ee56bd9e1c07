#include "grip.hpp"

#include <algorithm>

#include "interlock/error.hpp"
#include "no_memory.hpp"

namespace torture {

namespace {

constexpr auto kLook = std::chrono::milliseconds(10);
// A renewal that moves the end by less is not worth a line.
constexpr std::int64_t kWorthALine = 5'000'000;
// Leases of the shortest TTLs are renewed every few milliseconds.
constexpr std::int64_t kStall = 20'000'000;

}  // namespace

Grip::Grip(const Log& log, const interlock::Lease& lease, std::vector<interlock::Part> parts,
           About about, std::function<void()> on_lost)
    : log_(log), lease_(lease), parts_(std::move(parts)), about_(std::move(about)) {
  until_ = ticks(lease_.valid_until());
  for (const auto& part : parts_) write(part, about_.asked);
  lost_.emplace(lease_.lost(), [this, on_lost = std::move(on_lost)] {
    const Exempt me;
    log_.add("lost", {{"lease", about_.id}, {"reason", lease_.lost_reason()}});
    if (on_lost) on_lost();
  });
}

Grip::~Grip() { lost_.reset(); }

void Grip::write(const interlock::Part& part, std::int64_t asked) {
  Json line{{"lease", about_.id},
            {"op", about_.op},
            {"owner", lease_.owner().brief()},
            {"identity", about_.identity},
            {"r", part.resource},
            {"m", to_string(part.mode)},
            {"n", part.slots},
            {"c", part.capacity},
            {"asked", asked},
            {"adopted", about_.adopted},
            {"until", until_}};
  if (part.mode == interlock::Mode::exclusive) {
    try {
      line["fence"] = lease_.fence(part.resource).value;
    } catch (const interlock::Error&) {
      // A store without fences.
    }
  }
  log_.add("holds", std::move(line));
}

void Grip::look() {
  const auto at = now();
  const auto until = at + lease_.time_remaining().count();
  if (lease_.state() != interlock::LeaseState::held) return;
  const std::lock_guard lock(mutex_);
  if (until < until_ + kWorthALine) return;
  until_ = until;
  log_.add("valid", {{"t", at}, {"lease", about_.id}, {"until", until}});
}

void Grip::leave(const std::string& resource) {
  const auto gone =
      std::erase_if(parts_, [&](const interlock::Part& part) { return part.resource == resource; });
  if (gone > 0) log_.add("leaves", {{"lease", about_.id}, {"r", resource}});
}

void Grip::leave() {
  while (!parts_.empty()) leave(std::string(parts_.front().resource));
}

void Grip::change(const std::string& resource, interlock::Mode mode, std::int64_t asked) {
  leave(resource);
  parts_.push_back({.resource = resource, .mode = mode});
  const std::lock_guard lock(mutex_);
  write(parts_.back(), asked);
}

Watch::Watch(const Log& log)
    : log_(log), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Watch::~Watch() = default;

void Watch::add(Grip& grip) {
  const std::lock_guard lock(mutex_);
  grips_.push_back(&grip);
}

void Watch::remove(Grip& grip) {
  const std::lock_guard lock(mutex_);
  std::erase(grips_, &grip);
}

void Watch::cancel(const std::string& op, std::stop_source source, interlock::Duration after) {
  const std::lock_guard lock(mutex_);
  cancellations_.push_back({op, std::move(source), all_ ? now() : now() + after.count()});
}

void Watch::forget(const std::string& op) {
  const std::lock_guard lock(mutex_);
  std::erase_if(cancellations_, [&](const Cancellation& each) { return each.op == op; });
}

void Watch::cancel_all() {
  const std::lock_guard lock(mutex_);
  all_ = true;
  for (auto& each : cancellations_) each.at = 0;
}

void Watch::run(const std::stop_token& stop) {
  const Exempt me;
  auto last = now();
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kLook);
    const auto at = now();
    if (at - last > kStall) log_.add("stall", {{"from", last}});
    last = at;
    std::list<Cancellation> due;
    {
      const std::lock_guard lock(mutex_);
      for (auto* grip : grips_) grip->look();
      for (auto each = cancellations_.begin(); each != cancellations_.end();) {
        const auto next = std::next(each);
        if (each->at <= at) due.splice(due.end(), cancellations_, each);
        each = next;
      }
    }
    for (auto& each : due) {
      log_.add("cancel", {{"op", each.op}});
      each.source.request_stop();
    }
  }
}

}  // namespace torture
