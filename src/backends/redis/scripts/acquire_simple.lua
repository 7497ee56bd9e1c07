-- acquire: all parts of the claim, or none. Idempotent per owner; a waiter's heartbeat, too.
--
-- KEYS   for each part: the lock's key, its queue, its `who`; then the prefix's fence; then, in a
--        cluster, all other keys of the parts, so that the server can see whether it has them all
-- ARGV   1 owner   2 ttl in ms   3 the rest, in lines: see rows.lua (every word costs the server, so
--        they are few)   4 only if the claim is not a simple one; or 's': it is, and shared
-- Answer the fence as a number, or { 'granted', fences… }, { 'queued', ahead, look again in ms },
--        { 'busy' }, { 'lost' }, { 'wrong', part, mode, capacity, label }
--
-- This first part is all there is to do for nearly every claim: one exclusive lock, no identity,
-- nothing to take over; nobody waits, or those who do want the same. Each call here costs every user.
local KEYS, ARGV = KEYS, ARGV
if not ARGV[4] then
  local call, sub = redis.call, string.sub
  local first = call('EXISTS', KEYS[2]) == 1 and call('ZRANGE', KEYS[2], 0, 0)[1]
  local is_first = first and sub(first, 26) == ARGV[1] .. 'e'
  -- A server that is full refuses a script whose first change takes memory; whoever waits goes on.
  if is_first then call('PEXPIRE', KEYS[2], 6000) end
  if (is_first or not first) and call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    if first then
      call('ZREM', KEYS[2], first)
      call('HDEL', sub(KEYS[2], 1, -6) .. 'waiting', ARGV[1])
    end
    local t = call('TIME')
    local us = t[1] * 1000000 + t[2]
    local fence = string.format('%d', us)
    local last = call('GETSET', KEYS[4], fence)
    if last and (tonumber(last) or 0) >= us then
      us = last + 1
      fence = string.format('%d', us)
      call('SET', KEYS[4], fence)
    end
    call('SET', KEYS[3], fence .. '\n' .. ARGV[1] .. '\n' .. ARGV[3], 'PX', ARGV[2])
    return us
  end

  -- Held by one owner, or free and another one is first in line: into the queue, if it may.
  if sub(ARGV[3], 1, 1) == '1' then
    local waiting = sub(KEYS[2], 1, -6) .. 'waiting'
    local t = call('TIME')
    local us = t[1] * 1000000 + t[2]
    local now = math.floor(us / 1000)
    local holder, look = call('GET', KEYS[1]), nil
    if holder and holder ~= ARGV[1] and sub(holder, 1, 1) ~= '+' then
      local who = call('GET', KEYS[3]) or ''
      local by, made = string.match(who, '^%d+\n(%x+)\n..(%d*:?)')
      look = call('PTTL', KEYS[1])
      if by ~= holder then  -- another program's
        look = look < 0 and 100 or math.min(look, 100)
      elseif made ~= string.match(ARGV[3], '^..(%d*:)') then
        look = nil  -- another format
      elseif look > tonumber(string.match(who, '\n%d:(%d+)$') or look) then
        look = nil  -- the clock was set back
      end
    elseif not holder and first and sub(first, 58) == 'e' then
      local ends = string.match(call('HGET', waiting, sub(first, 26, 57)) or '', '^%d+')
      look = ends and tonumber(ends) > now and tonumber(ends) <= now + 3000 and ends - now
    end
    local entry = look and call('HGET', waiting, ARGV[1])
    local ticket = entry and string.match(entry, '\n([^\n]*)')
    local number
    if look and not ticket then
      number = string.format('%d', math.max(us, (tonumber(call('GET', KEYS[4]) or 0) or 0) + 1))
      local priority = string.match(ARGV[3], '^[^\n]*\n[^\n]*\n([^\n]*)')
      ticket = '1' .. string.format('%08x', 2147483647 - priority) ..
        string.format('%016.0f', number) .. ARGV[1] .. 'e'
    end
    if look and (holder or ticket > first) then
      if number then call('SET', KEYS[4], number) else call('PEXPIRE', KEYS[2], 6000) end
      call('ZADD', KEYS[2], 0, ticket)
      call('HSET', waiting, ARGV[1], (now + 3000) .. '\n' .. ticket .. '\n' ..
        sub(ticket, 10, 25) .. '\n' .. ARGV[1] .. '\n' .. ARGV[3])
      call('PEXPIRE', KEYS[2], 6000)
      call('PEXPIRE', waiting, 6000)
      local ahead = call('ZRANK', KEYS[2], ticket)
      if ahead == 1 then look = math.min(look, 500) end
      return { 'queued', ahead, math.max(1, look) }
    end
  end
elseif ARGV[4] == 's' then
  -- The same for one lock that is taken shared. Whoever takes it so waits for those only who want it
  -- exclusively, and there are mostly few or none of them.
  local call, sub, match = redis.call, string.sub, string.match
  local owner, ttl, side = ARGV[1], tonumber(ARGV[2]), sub(KEYS[2], 1, -6)
  local holders, ends, waiting = side .. 'holders', side .. 'ends', side .. 'waiting'
  local value = call('GET', KEYS[1])
  local t = call('TIME')
  local us = t[1] * 1000000 + t[2]
  local now = math.floor(us / 1000)
  local queue = call('ZRANGE', KEYS[2], 0, 15)
  local entry = queue[1] and call('HGET', waiting, owner)
  local ticket = entry and match(entry, '\n([^\n]*)')
  local shares = not value
  if value == '+shared' then  -- and nobody's hold has ended or is of another format, and it has none itself
    local oldest = call('ZRANGE', ends, 0, 0, 'WITHSCORES')
    shares = oldest[2] and tonumber(oldest[2]) > now and
      match(call('HGET', holders, sub(oldest[1], 1, 32)) or '', '^%d+\n%x+\n..(%d*:?)') == match(ARGV[3], '^..(%d*:)') and
      (ticket or not call('ZSCORE', ends, owner .. ':1'))
  end

  -- The first who wants it exclusively and came before; and whether that is all there is to know.
  local writer, clear = nil, #queue < 16
  for _, ahead in ipairs(queue) do
    local mode = sub(ahead, 58)
    if mode == 'n' then
      writer, clear = nil, false
      break
    end
    if ahead == ticket then
      clear = true
      break
    end
    if mode == 'e' then
      writer = ahead
      break
    end
  end

  if shares and clear and not writer then
    if ticket then
      call('PEXPIRE', KEYS[2], 6000)
      call('ZREM', KEYS[2], ticket)
      call('HDEL', waiting, owner)
    end
    local fence = string.format('%d', us)
    local last = call('GETSET', KEYS[4], fence)
    if last and (tonumber(last) or 0) >= us then
      us = last + 1
      fence = string.format('%d', us)
      call('SET', KEYS[4], fence)
    end
    local longer = not value
    if not value then
      call('SET', KEYS[1], '+shared', 'PX', ttl)
      call('DEL', holders, ends)
    elseif call('PTTL', KEYS[1]) < ttl then
      call('PEXPIRE', KEYS[1], ttl)
      longer = true
    end
    call('HSET', holders, owner, fence .. '\n' .. owner .. '\n' .. ARGV[3])
    call('ZADD', ends, now + ttl, owner .. ':1')
    if longer then
      call('PEXPIRE', holders, ttl)
      call('PEXPIRE', ends, ttl)
    end
    return us
  end

  if sub(ARGV[3], 1, 1) == '1' then
    local look
    if writer and (not value or shares) then
      local forgotten = match(call('HGET', waiting, sub(writer, 26, 57)) or '', '^%d+')
      look = forgotten and tonumber(forgotten) > now and tonumber(forgotten) <= now + 3000 and forgotten - now
    elseif value and value ~= owner and sub(value, 1, 1) ~= '+' then
      local who = call('GET', KEYS[3]) or ''
      local left = call('PTTL', KEYS[1])
      local by, made = match(who, '^%d+\n(%x+)\n..(%d*:?)')
      look = by == value and made == match(ARGV[3], '^..(%d*:)') and left <= tonumber(match(who, '\n%d:(%d+)$') or left) and left
    end
    local number
    if look and not ticket then
      number = string.format('%d', math.max(us, (tonumber(call('GET', KEYS[4]) or 0) or 0) + 1))
      local priority = match(ARGV[3], '^[^\n]*\n[^\n]*\n([^\n]*)')
      ticket = '1' .. string.format('%08x', 2147483647 - priority) ..
        string.format('%016.0f', number) .. owner .. 's'
    end
    if look and (not writer or ticket > writer) then
      if number then call('SET', KEYS[4], number) else call('PEXPIRE', KEYS[2], 6000) end
      call('ZADD', KEYS[2], 0, ticket)
      call('HSET', waiting, owner, (now + 3000) .. '\n' .. ticket .. '\n' ..
        sub(ticket, 10, 25) .. '\n' .. owner .. '\n' .. ARGV[3])
      call('PEXPIRE', KEYS[2], 6000)
      call('PEXPIRE', waiting, 6000)
      local ahead = call('ZRANK', KEYS[2], ticket)
      if ahead == 1 then look = math.min(look, 500) end
      return { 'queued', ahead, math.max(1, look) }
    end
  end
end
