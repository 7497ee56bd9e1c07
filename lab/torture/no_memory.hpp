// Memory at its end, in a worker: allocations of the library's own threads fail.
#pragma once

#include <cstddef>
#include <utility>

namespace torture {

/// The thread's allocations do not fail as long as this is there: what the worker does itself, and writes down.
class Exempt {
 public:
  Exempt() noexcept;
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
  ~Exempt();

 private:
  bool before_;
};

/// For operator new: whether this allocation fails. While the file $TORTURE_MEMORY says so (8 bytes, native), one of so many
/// does.
bool allocation_fails() noexcept;

}  // namespace torture
