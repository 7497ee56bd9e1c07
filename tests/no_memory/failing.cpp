#include "no_memory/failing.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

bool fails() {
  using namespace no_memory;
  if (exempt || (only_chosen && !chosen)) return false;
  const auto number = ++allocations;
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const auto mixed = static_cast<long>((static_cast<std::uint64_t>(number) * kOdd) >> 33U);
  const long among = one_of;
  const long first = fails_at;
  const bool chosen = first != 0 && number >= first && number < first + in_a_row;
  if (!chosen && (among == 0 || mixed % among != 0)) return false;
  ++failed;
  return true;
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc,misc-new-delete-overloads)
void* operator new(std::size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc,misc-new-delete-overloads)
