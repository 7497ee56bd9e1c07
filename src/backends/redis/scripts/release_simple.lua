-- release: forgets the owner on the parts named, holding or queued, and wakes whoever is next.
-- KEYS and ARGV as for acquire. Answer 1: it held; 2: it waited; 0: it is not known
local released = false
if ARGV[3] == 'simple' and redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1], KEYS[3])
  if redis.call('EXISTS', KEYS[2]) == 0 then return 1 end
  released = true
end
