-- inspect: everything about one resource, as it is; changes nothing.
-- KEYS   the lock's key, its queue, its `who`
-- Answer the lock's value, its PTTL, who, holders, ends, waiting, now in ms
local side = string.sub(KEYS[2], 1, -6)
local time = redis.call('TIME')
return {
  redis.call('GET', KEYS[1]),
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[3]),
  redis.call('HVALS', side .. 'holders'),
  redis.call('ZRANGE', side .. 'ends', 0, -1, 'WITHSCORES'),
  redis.call('HVALS', side .. 'waiting'),
  time[1] * 1000 + math.floor(time[2] / 1000),
}
