-- acquire: all parts of the claim, or none. Idempotent per owner; a waiter's heartbeat, too.
--
-- KEYS   for each part: the lock's key, its queue, its `who`; then the prefix's fence; then, in a
--        cluster, all other keys of the parts, so that the server can see whether it has them all
-- ARGV   1 owner   2 ttl in ms   3 the rest, in lines: see rows.lua (every word costs the server, so
--        they are few)   4 only if the claim is not a simple one
-- Answer the fence as a number, or { 'granted', fences… }, { 'queued', ahead, look again in ms },
--        { 'busy' }, { 'lost' }, { 'wrong', part, mode, capacity, label }
--
-- This first part is nearly all there is to do for nearly every claim: one exclusive lock, no
-- identity, nothing to take over. Each call here costs every user.
if not ARGV[4] and redis.call('EXISTS', KEYS[2]) == 0 and
    redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2]
  local fence = string.format('%.0f', us)
  local last = redis.call('GETSET', KEYS[4], fence)
  if last and last >= fence then  -- as many digits, so text compares like numbers
    us = last + 1
    fence = string.format('%.0f', us)
    redis.call('SET', KEYS[4], fence)
  end
  redis.call('SET', KEYS[3], fence .. '\n' .. ARGV[1] .. '\n' .. ARGV[3], 'PX', ARGV[2])
  return us
end
