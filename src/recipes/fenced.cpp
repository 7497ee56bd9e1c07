#include "interlock/fenced.hpp"

#include "interlock/error.hpp"

namespace interlock {

Fence exclusive_fence(const Lease& lease) {
  if (lease.mode() == Mode::exclusive) return lease.fence();
  throw Error(
      Errc::unsupported,
      "a fence guards what one holds alone, and this lease is " +
          std::string(lease.mode() == Mode::shared ? "shared" : "of slots") +
          ": the newest of several holders would shut out the others; take an exclusive lock",
      {.resource = lease.resource(), .node = {}, .maybe_held = false});
}

SqlFence sql_fence(std::string_view fence, std::string_view owner) {
  const std::string f(fence);
  const std::string o(owner);
  return {.assign = "fence = " + f + ", fence_owner = " + o,
          .admits = "(fence < " + f + " OR (fence = " + f + " AND fence_owner = " + o + "))"};
}

// Fences of a few years of microseconds stay below 2^53, where Lua's numbers are exact.
std::string_view redis_fence() {
  return R"(do
  local seen = redis.call('HMGET', KEYS[1], 'fence', 'owner')
  local newest, fence = tonumber(seen[1] or '0'), tonumber(ARGV[1])
  if not fence or fence <= 0 then return redis.error_reply('FENCED ARGV[1] has to be a fence') end
  if fence < newest or (fence == newest and seen[2] ~= ARGV[2]) then
    return redis.error_reply('FENCED ' .. ARGV[1] .. ': a newer holder was here, with ' .. seen[1])
  end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'owner', ARGV[2])
end
)";
}

}  // namespace interlock
