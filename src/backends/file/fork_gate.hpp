// No fork in the middle of a critical section.
//
// flock belongs to the open file, and a forked child shares the parent's open files: if a thread
// forked while another one held a shard, and the parent was then killed, the child would keep the
// shard locked for as long as it lives. So fork waits until no thread of the process is inside.
// Critical sections are short and call nobody back, so nothing can fork from within one.
#pragma once

namespace interlock::file {

/// Held by a thread for the length of a critical section.
class ForkGate {
 public:
  ForkGate() noexcept;
  ForkGate(ForkGate&& other) noexcept;
  ForkGate& operator=(ForkGate&&) = delete;
  ~ForkGate();

 private:
  bool inside_ = true;
};

}  // namespace interlock::file
