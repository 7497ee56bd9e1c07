-- A node of a Redlock: what it knows about itself, in one hash, so that it has all of it or none.
--
--   born    its incarnation: when this state began, in us of its own clock
--   run     the server's run_id when it was last looked at
--   ready   '1': its counter can be trusted, and it counts in a majority
--   count   the largest number it has given out, or was told of
--   until   when the last of all holds it ever granted ends, in ms of its own clock
--   longest the TTL of the longest hold that may last, in ms
--   wait    not ready: when it may be repaired, in ms
--   length  how long that wait was when it began, in ms
--   ticket  the last number of its queues
--   same:XX the largest fence that an identity has had here, by the first digits of a hash of the lock's key
--
-- A server that was started again without an append-only file may be back with an old state, or
-- with none: it is a new incarnation then, and not ready.
--
-- INFO costs more than all the rest of a usual claim. So a client asks for the run_id when it connects, and
-- sends its first 16 digits along (`run`, or nothing) over the same connection, which does not outlive the
-- server.
--
-- If an end is further away than its length, the clock was set back since. Then the length is what is left.
local function open_node(key, run)
  local field = redis.call('HMGET', key, 'born', 'run', 'ready', 'count', 'until', 'wait', 'ticket',
    'longest', 'length')
  local time = redis.call('TIME')
  local node = {
    key = key, born = field[1], ready = field[3] == '1', count = tonumber(field[4] or 0),
    ends = tonumber(field[5] or 0), wait = field[6] and tonumber(field[6]),
    ticket = tonumber(field[7] or 0), now_us = time[1] * 1000000 + time[2],
  }
  node.now = math.floor(node.now_us / 1000)
  node.longest = tonumber(field[8] or math.max(0, node.ends - node.now))
  node.ends = math.min(node.ends, node.now + node.longest)
  local length = tonumber(field[9] or 0)
  if field[9] and node.wait and node.wait > node.now + length then
    node.wait = node.now + length
    redis.call('HSET', key, 'wait', string.format('%.0f', node.wait))
  end
  if run and field[2] and string.sub(field[2], 1, 16) == run then return node end
  run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  if field[2] == run then return node end
  if not node.born or
      string.match(redis.call('INFO', 'persistence'), 'aof_enabled:(%d)') ~= '1' then
    node.born, node.ready, node.wait = string.format('%.0f', node.now_us), false, nil
    redis.call('HDEL', key, 'ready', 'wait', 'length')
  end
  redis.call('HSET', key, 'born', node.born, 'run', run)
  return node
end
