-- All there is to do for nearly every claim, as in acquire_simple: one exclusive lock, nobody waits, or
-- those who do want the same.
if ARGV[4] == '-' then
  local call, sub = redis.call, string.sub
  local first = call('EXISTS', KEYS[2]) == 1 and call('ZRANGE', KEYS[2], 0, 0)[1]
  local is_first = first and sub(first, 26) == ARGV[1] .. 'e' and
    (not agreed or tonumber(sub(first, 10, 25)) == agreed)
  if is_first then call('PEXPIRE', KEYS[2], 6000) end
  if (is_first or not first) and call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    if first then
      call('ZREM', KEYS[2], first)
      call('HDEL', sub(KEYS[2], 1, -6) .. 'waiting', ARGV[1])
    end
    local hold = node.count + 1
    local text = string.format('%.0f', hold)
    call('SET', KEYS[3], text .. '\n' .. ARGV[1] .. '\n' .. ARGV[3] ..
      string.format('\n%.0f\n', node.now) .. text .. string.format('\n\n%.0f', attempt), 'PX', ARGV[2])
    local longest = math.max(node.ends > node.now and node.longest or 0, ARGV[2])
    call('HSET', node.key, 'count', text, 'longest', string.format('%.0f', longest), 'until',
      string.format('%.0f', math.max(node.ends, node.now + ARGV[2])))
    return { 'granted', hold, hold }
  end

  if sub(ARGV[3], 1, 1) == '1' then
    local waiting, now = sub(KEYS[2], 1, -6) .. 'waiting', node.now
    local holder, look = call('GET', KEYS[1]), nil
    if holder and holder ~= ARGV[1] and sub(holder, 1, 1) ~= '+' then
      local who = call('GET', KEYS[3]) or ''
      local by, made = string.match(who, '^%d+\n(%x+)\n..(%d*:?)')
      look = call('PTTL', KEYS[1])
      if by ~= holder then  -- another program's
        look = look < 0 and 100 or math.min(look, 100)
      elseif made ~= string.match(ARGV[3], '^..(%d*:)') then
        look = nil  -- another format
      elseif look > tonumber(string.match(who, '\n%d:(%d+)\n%d+\n%d+\n%x*\n%d+$') or look) then
        look = nil  -- the clock was set back
      end
    elseif not holder and first and sub(first, 58) == 'e' then
      local ends = string.match(call('HGET', waiting, sub(first, 26, 57)) or '', '^%d+')
      look = ends and tonumber(ends) > now and tonumber(ends) <= now + 3000 and ends - now
    end
    local entry = look and call('HGET', waiting, ARGV[1])
    local ticket = entry and string.match(entry, '\n([^\n]*)')
    local place = ticket and tonumber(sub(ticket, 10, 25)) or agreed or new_place()
    if look and not ticket then
      local priority = string.match(ARGV[3], '^[^\n]*\n[^\n]*\n([^\n]*)')
      ticket = '1' .. string.format('%08x', 2147483647 - priority) ..
        string.format('%016.0f', place) .. ARGV[1] .. 'e'
    end
    if look and (holder or ticket > first) and (not agreed or place == agreed) then
      if entry then call('PEXPIRE', KEYS[2], 6000) end
      call('ZADD', KEYS[2], 0, ticket)
      call('HSET', waiting, ARGV[1], (now + 3000) .. '\n' .. ticket .. '\n' ..
        string.format('%.0f', place) .. '\n' .. ARGV[1] .. '\n' .. ARGV[3] ..
        string.format('\n%.0f\n%.0f\n\n%.0f', now, node.count + 1, attempt))
      call('PEXPIRE', KEYS[2], 6000)
      call('PEXPIRE', waiting, 6000)
      if place > node.ticket then call('HSET', node.key, 'ticket', string.format('%.0f', place)) end
      local ahead = call('ZRANK', KEYS[2], ticket)
      if ahead == 1 then look = math.min(look, 500) end
      return { 'queued', ahead, math.max(1, look), place }
    end
  end
end
