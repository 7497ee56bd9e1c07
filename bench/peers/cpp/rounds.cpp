#include "rounds.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

namespace peers {

namespace {
constexpr std::size_t kMost = 200'000;
}

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Rounds::Rounds(const Work& work, int worker, int batch, Inside& inside)
    : work_(&work),
      inside_(&inside),
      register_(work.register_of(worker)),
      batch_(work.records ? 1 : batch),
      end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(work.time)),
      random_(std::random_device{}()) {}

bool Rounds::next() {
  if (work_->most > 0 && cycles_ >= work_->most) return false;
  if (cycles_ % batch_ == 0) {
    begun_ = Clock::now();
    if (begun_ >= end_) return false;
    if (work_->records) record_[0] = now_us();
  }
  shared_ = work_->shared > 0 && std::uniform_real_distribution<>()(random_) < work_->shared;
  return true;
}

void Rounds::enter(std::uint64_t fence) {
  if (work_->records) {
    record_[1] = now_us();
    record_[3] = static_cast<std::int64_t>(fence);
  }
  if (!work_->distinct) {
    if (shared_) {
      ++inside_->readers;
      if (inside_->writers > 0) ++overlaps_;
    } else if (inside_->writers++ > 0 || inside_->readers > 0) {
      ++overlaps_;
    }
  }
  if (!register_.empty() && !shared_) {
    const int file = ::open(register_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    made_register_ = file >= 0;
    if (made_register_) {
      ::close(file);
    } else {
      ++overlaps_;
    }
  }
  if (work_->hold.count() > 0) std::this_thread::sleep_for(work_->hold);
}

void Rounds::leave() {
  if (made_register_) ::unlink(register_.c_str());
  made_register_ = false;
  if (!work_->distinct) --(shared_ ? inside_->readers : inside_->writers);
  if (work_->records) record_[2] = now_us();
}

void Rounds::done() {
  ++cycles_;
  if (work_->records) {
    if (records_.size() < kMost) records_.push_back(record_);
  } else if (cycles_ % batch_ == 0 && cycle_us_.size() < kMost) {
    cycle_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun_).count() /
                        batch_);
  }
}

}  // namespace peers
