#include <sys/random.h>
#include <cerrno>

#include <array>
#include <charconv>
#include <utility>

#include "core/process.hpp"
#include "interlock/claim.hpp"
#include "interlock/error.hpp"

namespace interlock {

namespace {

// A system call for each owner would cost more than a lock in memory does.
struct Pool {
  std::array<std::uint64_t, 64> words{};
  std::size_t used = words.size();
  std::uint64_t epoch = 0;

  void fill() {
    auto* to = reinterpret_cast<char*>(words.data());
    std::size_t left = sizeof(words);
    while (left > 0) {
      const auto got = getrandom(to, left, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(Errc::refused, "the system gives no random numbers");
      to += got;
      left -= static_cast<std::size_t>(got);
    }
    used = 0;
    epoch = core::fork_epoch();
  }
};

}  // namespace

Owner Owner::random() {
  static thread_local Pool pool;
  Owner owner;
  while (owner.empty()) {
    // A forked child must not hand out what its parent has.
    if (pool.used + 2 > pool.words.size() || pool.epoch != core::fork_epoch()) pool.fill();
    owner.high = std::exchange(pool.words[pool.used], 0);
    owner.low = std::exchange(pool.words[pool.used + 1], 0);
    pool.used += 2;
  }
  return owner;
}

std::optional<Owner> Owner::parse(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  Owner owner;
  const auto read = [&](std::size_t from, std::uint64_t& into) {
    const char* begin = hex.data() + from;
    const auto [end, error] = std::from_chars(begin, begin + 16, into, 16);
    return error == std::errc{} && end == begin + 16;
  };
  if (!read(0, owner.high) || !read(16, owner.low)) return std::nullopt;
  return owner;
}

std::string Owner::to_string() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = digits[(high >> (4 * i)) & 15U];
    text[31 - i] = digits[(low >> (4 * i)) & 15U];
  }
  return text;
}

std::string Owner::brief() const { return to_string().substr(0, 8); }

}  // namespace interlock
