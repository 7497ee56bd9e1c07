-- release: forgets the owner on the parts named, holding or queued, and wakes whoever is next.
-- KEYS and ARGV as for acquire, but without a fence, and for a simple claim only its owner and the
-- flags. Answer 1: it held; 2: it waited; 0: it is not known
local released = false
if not ARGV[4] and redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1], KEYS[3])
  if redis.call('EXISTS', KEYS[2]) == 0 then return 1 end
  released = true
end
