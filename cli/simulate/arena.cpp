#include "simulate/arena.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace cli::simulation {

namespace {

// What lies where, one after the other.
struct Layout {
  explicit Layout(const Plan& plan)
      : events_each(std::clamp<std::size_t>(2'000'000 / plan.workers(), 512, 100'000)) {
    const auto place = [this](std::size_t size) {
      const auto at = bytes;
      bytes += (size + 63) / 64 * 64;
      return at;
    };
    place(sizeof(Shared));
    tallies = place(sizeof(Tally) * plan.workers());
    marks = place(sizeof(Marks) * plan.workers());
    guarded = place(sizeof(Guarded) * plan.resources);
    events = place(sizeof(Event) * events_each * plan.workers());
  }
  std::size_t events_each;
  std::size_t tallies = 0, marks = 0, guarded = 0, events = 0;
  std::size_t bytes = 0;
};

[[noreturn]] void fail_with(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Arena::Arena(const Plan& plan) : memory_(::memfd_create("interlock-simulate", MFD_CLOEXEC)) {
  const auto bytes = Layout(plan).bytes;
  if (!memory_ || ::ftruncate(memory_.get(), static_cast<off_t>(bytes)) != 0) {
    fail_with("no memory to share with other processes");
  }
  map(bytes);
  shared_->plan = plan;
  std::random_device random;
  (void)std::snprintf(shared_->run.data(), shared_->run.size(), "%08x", random());
  Register::prepare(shared_->ledger);
  lay_out(plan);
}

Arena::Arena(Descriptor memory) : memory_(std::move(memory)) {
  struct stat status {};
  if (::fstat(memory_.get(), &status) != 0) fail_with("the memory of the simulation is missing");
  map(static_cast<std::size_t>(status.st_size));
  lay_out(shared_->plan);
}

void Arena::map(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (at == MAP_FAILED) fail_with("the memory of the simulation can't be mapped");
  bytes_ = {static_cast<std::byte*>(at), bytes};
  shared_ = static_cast<Shared*>(at);
}

void Arena::lay_out(const Plan& plan) {
  const Layout layout(plan);
  const auto at = [&](std::size_t offset) { return static_cast<void*>(&bytes_[offset]); };
  tallies_ = {static_cast<Tally*>(at(layout.tallies)), plan.workers()};
  events_ = {static_cast<Event*>(at(layout.events)), layout.events_each * plan.workers()};
  events_each_ = layout.events_each;
  register_.emplace(shared_->ledger,
                    std::span(static_cast<Marks*>(at(layout.marks)), plan.workers()),
                    std::span(static_cast<Guarded*>(at(layout.guarded)), plan.resources),
                    plan.kind == Kind::escalation, plan.named_by_process());
}

Arena::~Arena() { ::munmap(bytes_.data(), bytes_.size()); }

std::span<const Event> Arena::events(std::uint32_t worker) const {
  return events_.subspan(worker * events_each_,
                         std::min<std::size_t>(tallies_[worker].events, events_each_));
}

void Arena::add(std::uint32_t worker, const Event& event) {
  const auto at = tallies_[worker].events++;
  if (at < events_each_) events_[worker * events_each_ + at] = event;
}

bool Arena::events_left_out() const {
  return std::any_of(tallies_.begin(), tallies_.end(),
                     [this](const Tally& tally) { return tally.events > events_each_; });
}

std::string Arena::name(std::uint32_t resource) const {
  const auto run = std::string("interlock-simulate:") + shared_->run.data();
  if (plan().kind != Kind::escalation) return run + ":" + std::to_string(resource);
  return run + ":table" + (resource == 0 ? "" : "/" + std::to_string(resource));
}

std::vector<std::string> Arena::names() const {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < plan().resources; ++i) all.push_back(name(i));
  return all;
}

interlock::Duration Arena::now() const {
  return interlock::BootClock::now().time_since_epoch() - interlock::Duration(shared_->started);
}

void Arena::fail(const interlock::Error& error) {
  if (!shared_->has_error.exchange(true)) {
    const std::string what = error.what();
    shared_->errc = error.errc();
    std::memcpy(shared_->error.data(), what.data(),
                std::min(what.size(), shared_->error.size() - 1));
  }
  shared_->stop = true;
}

const char* role_name(Kind kind, std::size_t role) {
  switch (kind) {
    case Kind::speed:
      return role == 0 ? "exclusive" : "";
    case Kind::escalation:
      return role == 0 ? "row" : role == 1 ? "table" : "";
    case Kind::time:
    case Kind::stress:
      break;
  }
  return role == 0 ? "exclusive" : role == 1 ? "shared" : "several";
}

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::time:
      return "time";
    case Kind::speed:
      return "speed";
    case Kind::stress:
      return "stress";
    case Kind::escalation:
      return "escalation";
  }
  return "";
}

}  // namespace cli::simulation
