// What the operating system does to the whole process: fork and exit. The only process-wide state
// there is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace interlock::core {

/// Grows in a child when the process forks. Whoever remembers another number belongs to the parent.
std::uint64_t fork_epoch() noexcept;

/// Something that has to be done before the process ends.
class AtExit {
 public:
  virtual ~AtExit() = default;
  virtual void at_exit() noexcept = 0;
};

/// Registers for the orderly end of the process (return from main, std::exit). Forgotten by itself
/// when the object is gone.
void call_at_exit(const std::shared_ptr<AtExit>& object);
/// What was under way when the process ended holds on to itself: it stays as it is.
void keep_to_the_end(std::shared_ptr<AtExit> object);
/// For what the calling thread can't wait for, as it is a part of it. The end of the process waits for
/// it, within reason. It is left undone if the system has no thread left.
void elsewhere(std::function<void()> work);

}  // namespace interlock::core
