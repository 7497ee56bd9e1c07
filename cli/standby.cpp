#include "standby.hpp"

#include <chrono>

#include "interlock/client.hpp"
#include "options.hpp"

namespace cli {

using interlock::Errc;
using std::chrono::milliseconds;

Standby::Standby(std::string url, std::string token)
    : url_(std::move(url)), token_(std::move(token)) {
  quiet_grpc();
  thread_ = std::thread([this] { work(); });
}

Standby::~Standby() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Standby::work() {
  do {
    try {
      return hold();
    } catch (const interlock::Error& error) {
      if (!error.retryable()) break;
    } catch (const std::exception&) {
      break;
    }
  } while (!pause(milliseconds(200)));
  state_ = State::lost;
}

void Standby::hold() {
  const auto client = interlock::connect(url_);
  auto lease = client.adopt(token_);
  state_ = State::held;
  untie(lease);
  while (!pause(milliseconds(50))) {
    if (!lease) throw interlock::Error(Errc::lost, lease.lost_reason());
  }
  lease.release();
}

// The death of this process must not free the lock.
void Standby::untie(interlock::Lease& lease) {
  while (lease) {
    try {
      lease.tie_to({});
      return;
    } catch (const interlock::Error& error) {
      if (!error.retryable() || pause(milliseconds(50))) return;
    }
  }
}

bool Standby::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return ending_; });
}

}  // namespace cli
