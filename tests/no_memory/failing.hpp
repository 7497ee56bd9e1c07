// Allocations that fail: what this program's operator new does.
#pragma once

#include <atomic>
#include <utility>

namespace no_memory {

inline std::atomic<long> allocations =
    0;                                  ///< of all threads, but for those of the tests themselves
inline std::atomic<long> fails_at = 0;  ///< this one of them fails; 0: none
inline std::atomic<long> in_a_row = 1;  ///< so many fail from there on
inline std::atomic<long> one_of = 0;    ///< one of so many fails; 0: none
inline std::atomic<long> failed = 0;
inline thread_local bool exempt = false;
inline std::atomic<bool> only_chosen = false;  ///< all threads that are not chosen are exempt
inline thread_local bool chosen = false;

/// What the test itself does meanwhile.
class Exempt {
 public:
  Exempt() : before_(std::exchange(exempt, true)) {}
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
  ~Exempt() { exempt = before_; }

 private:
  bool before_;
};

}  // namespace no_memory
