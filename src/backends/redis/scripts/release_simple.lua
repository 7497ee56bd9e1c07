-- release: forgets the owner on the parts named, holding or queued, and wakes whoever is next.
-- KEYS and ARGV as for acquire, but without a fence, and for a simple claim only its owner and the
-- flags. Answer 1: it held all of it; 2: it waited; 0: it did not
local KEYS, ARGV, released = KEYS, ARGV, false
local call = redis.call
if not ARGV[4] and call('GET', KEYS[1]) == ARGV[1] then
  call('DEL', KEYS[1], KEYS[3])
  if call('EXISTS', KEYS[2]) == 0 then return 1 end
  released = true
  -- The usual waiter, who is there to hear of it.
  local sub = string.sub
  local ticket = call('ZRANGE', KEYS[2], 0, 0)[1]
  if sub(ticket, 1, 1) == '1' and sub(ticket, 58) == 'e' then
    local waiting, by = sub(KEYS[2], 1, -6) .. 'waiting', sub(ticket, 26, 57)
    local ends, rest, channel = string.match(call('HGET', waiting, by) or '',
      '^(%d+)(\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n([^\n]*).*)$')
    local t = call('TIME')
    local now = math.floor((t[1] * 1000000 + t[2]) / 1000)
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
