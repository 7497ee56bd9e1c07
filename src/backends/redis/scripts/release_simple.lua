-- release: forgets the owner on the parts named, holding or queued, and wakes whoever is next.
-- KEYS and ARGV as for acquire, but without a fence, and for a simple claim only its owner and the
-- flags. Answer 1: it held all of it; 2: it waited; 0: it did not
-- covers: a lock may have shared holds below it, which end with it (a Redlock's upgrades)
local KEYS, ARGV, released = KEYS, ARGV, false
local call, sub = redis.call, string.sub
local value = not ARGV[4] and call('GET', KEYS[1])
local now, shared
if value and value == ARGV[1] then
  if covers then
    local side = sub(KEYS[2], 1, -6)
    call('DEL', KEYS[1], KEYS[3], side .. 'holders', side .. 'ends')
  else
    call('DEL', KEYS[1], KEYS[3])
  end
  released = true
elseif value == '+shared' and not covers then
  local side, own = sub(KEYS[2], 1, -6), ARGV[1] .. ':1'
  local holders, ends = side .. 'holders', side .. 'ends'
  local t = call('TIME')
  now = math.floor((t[1] * 1000000 + t[2]) / 1000)
  local oldest = call('ZRANGE', ends, 0, 0, 'WITHSCORES')
  local last = call('ZRANGE', ends, -1, -1)[1]
  local none_ended = oldest[2] and tonumber(oldest[2]) > now
  if none_ended and oldest[1] == own and last == own then
    call('DEL', KEYS[1], holders, ends)
    released = true
  elseif none_ended and call('ZREM', ends, own) == 1 then
    call('HDEL', holders, ARGV[1])
    if last == own then
      local left = math.max(1, call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2] - now)
      call('PEXPIRE', KEYS[1], left)
      call('PEXPIRE', holders, left)
      call('PEXPIRE', ends, left)
    end
    -- Others still share it. Who can share it, too, was told before. Who wants it exclusively has to wait for
    -- them, unless it shares the lock itself, or its identity does.
    local queue = call('ZRANGE', KEYS[2], 0, 15)
    local passes = #queue == 16 or sub(queue[1] or '', 1, 1) == '0'
    for _, ticket in ipairs(queue) do
      if passes then break end
      passes = sub(ticket, 58) == 'e' and string.match(call('HGET', side .. 'waiting', sub(ticket, 26, 57)) or '',
        '^' .. string.rep('[^\n]*\n', 8) .. '[^\n]')
    end
    if not passes then return 1 end
    released, shared = true, true
  end
end
if released and not shared then
  if call('EXISTS', KEYS[2]) == 0 then return 1 end
  -- The usual waiter, who is there to hear of it.
  local ticket = call('ZRANGE', KEYS[2], 0, 0)[1]
  if sub(ticket, 1, 1) == '1' and sub(ticket, 58) == 'e' then
    local waiting, by = sub(KEYS[2], 1, -6) .. 'waiting', sub(ticket, 26, 57)
    local ends, rest, channel = string.match(call('HGET', waiting, by) or '',
      '^(%d+)(\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n([^\n]*).*)$')
    if not now then
      local t = call('TIME')
      now = math.floor((t[1] * 1000000 + t[2]) / 1000)
    end
    if ends and tonumber(ends) > now then
      local heard = redis.pcall(sub(ARGV[2], 2, 2) == 'S' and 'SPUBLISH' or 'PUBLISH', channel, by)
      if type(heard) == 'number' and heard > 0 then
        if tonumber(ends) > now + 1000 then
          redis.pcall('HSET', waiting, by, (now + 1000) .. rest)
        end
        return 1
      end
    end
  end
end
