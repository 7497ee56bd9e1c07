-- The rules of exclusion and order over the keys of a resource, a row:
--
--   lock     the owner of an exclusive lock; or what it is held as by those in `holders`:
--            +shared, +slots:CAPACITY, +same (one identity, at least one of its locks exclusive).
--            Anything else was set by another program, and counts as an exclusive lock.
--   who      string: the record of the exclusive owner
--   holders  hash: owner -> record          ends   sorted set: owner:slots -> when it ends, in ms
--   queue    sorted set of tickets, by text
--   waiting  hash: owner -> when its place is forgotten (in ms), ticket, record: a line each
--
-- ARGV[3] and the records are lines of text. A record is
--     number, owner, flags, spec, priority, channel, identity, label, host, pid, tied:ttl
-- and ARGV[3] the same from the flags on, for the first part; ARGV[4] has the specs of the others.
-- The flags are: 1 if it may queue, else 0; P or S for PUBLISH or SPUBLISH; the format of the record and a
-- colon; and the owner to take over from. A spec is a letter for the mode (e, s, n), slots:capacity:ancestor. The number is the
-- fence, or in the queue the ticket's number; both are microseconds of the server's clock, so they
-- also say since when. A ticket begins with 0 if its owner holds already and wants more, else with
-- 1; then come its priority, its number, its owner and its mode.
--
-- Waiters that fell silent are dropped when they come to the head of the queue.
--
-- A holder has no more than its TTL left, and a waiter no more than TICKET_MS. Whoever seems to have more was
-- there when the server's clock was set back, and gets that much from now: its client counts less.
local call, match, sub = redis.call, string.match, string.sub
local owner, ttl, text = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local by_own_client = not text  -- the release of a simple claim says no more
if not text then text = ARGV[2] .. '\ne1:0:0\n0\n\n\n\n\n0\n1' end
local flags, own_spec, tail, priority, home, identity =
  match(text, '^([^\n]*)\n([^\n]*)(\n([^\n]*)\n([^\n]*)\n([^\n]*).*)$')
local format, instead = match(flags, '^..(%d*):?(.*)$')
local publish = sub(flags, 2, 2) == 'S' and 'SPUBLISH' or 'PUBLISH'
local TICKET_MS = 3000  -- a place in the queue lasts this long without a heartbeat
local WOKEN_MS = 1000   -- and this long when its owner was told that it is its turn
local FOREIGN_MS = 100  -- how often the first in line looks at a lock of another program

local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local specs = { own_spec }
if ARGV[4] then
  for spec in string.gmatch(ARGV[4], '%l%d+:%d+:%d') do specs[#specs + 1] = spec end
end
local parts = #specs
local FENCE = KEYS[3 * parts + 1]

-- Larger than any number before, and not behind the clock.
local counter
local function next_number()
  if not counter then
    counter = math.max(tonumber(call('GET', FENCE) or 0) or 0, now_us - 1)
  end
  counter = counter + 1
  return counter
end
local function save_counter()
  if counter then call('SET', FENCE, string.format('%.0f', counter)) end
end

local function make_record(number, spec, lasts)  -- lasts: if it is not the TTL that was asked for
  local rest = tail
  if lasts and lasts ~= ttl then
    rest = string.gsub(tail, '^(' .. string.rep('\n[^\n]*', 6) .. '\n%d:)%d+', '%1' .. string.format('%.0f', lasts))
  end
  return string.format('%.0f', number) .. '\n' .. owner .. '\n' .. flags .. '\n' .. spec .. rest
end

local TTL_LINE = '^' .. string.rep('[^\n]*\n', 10) .. '%d:(%d+)'
local function most_left(left, record)  -- nothing more if the record does not say
  return math.min(left, tonumber(match(record or '', TTL_LINE) or left))
end

local function parse(record)
  if not record then return nil end
  local number, by, spec, mode, slots, capacity, channel, who, label = match(record,
    '^(%d+)\n(%x+)\n[^\n]*\n((%l)(%d+):(%d+):%d)\n[^\n]*\n([^\n]*)\n([^\n]*)\n([^\n]*)')
  if not number then return nil end
  return { number = tonumber(number), owner = by, spec = spec, mode = mode, slots = tonumber(slots),
    capacity = tonumber(capacity), home = channel, identity = who, label = label, text = record }
end

-- Another program's value may begin with a +, too.
local function is_set(row)
  local value = row.value
  return value and (value == '+shared' or value == '+same' or match(value, '^%+slots:%d+$') ~= nil)
end

local function hold_of(row, by)
  if by == '' or not row.value then return nil end
  if row.value == by then
    local record = parse(call('GET', row.who))
    if record and record.owner == by then return record end
    return { number = 0, owner = by, mode = 'e', slots = 1, spec = 'e1:0:0', home = '', identity = '' }
  end
  return is_set(row) and parse(call('HGET', row.holders, by)) or nil
end

local function others(row)  -- records of the holders in `holders` but the claim's own
  local found, all = {}, call('HGETALL', row.holders)
  for i = 1, #all, 2 do
    if all[i] ~= owner and all[i] ~= instead then found[#found + 1] = parse(all[i + 1]) end
  end
  return found
end

-- After holders went: the lock's key says again what is left, and ends with the last of them.
local function settle(row)
  local last = call('ZRANGE', row.ends, -1, -1, 'WITHSCORES')
  if #last == 0 then
    call('DEL', row.lock, row.holders, row.ends)
    row.value = false
    return
  end
  local left = math.max(1, last[2] - now)
  for _, key in ipairs({ row.lock, row.holders, row.ends }) do call('PEXPIRE', key, left) end
  if row.value ~= '+same' then return end
  for _, record in ipairs(call('HVALS', row.holders)) do
    if parse(record).mode == 'e' then return end
  end
  row.value = '+shared'
  redis.pcall('SET', row.lock, row.value, 'PX', left)
end

local function drop_holder(row, record)
  if row.value == record.owner then
    call('DEL', row.lock, row.who)
    row.value = false
  else
    call('HDEL', row.holders, record.owner)
    call('ZREM', row.ends, record.owner .. ':' .. record.slots)
    settle(row)
  end
end

local function leave_queue(row, ticket)
  call('ZREM', row.queue, ticket)
  call('HDEL', row.waiting, sub(ticket, 26, 57))
end

-- When the ticket is forgotten, and the rest of its entry. Nothing if that time has come: it is
-- dropped, with whatever else is left of it.
local function alive(row, ticket)
  local entry = call('HGET', row.waiting, sub(ticket, 26, 57))
  local ends, rest = match(entry or '', '^(%d+)(\n.*)$')
  ends = tonumber(ends or 0)
  if ends > now + TICKET_MS then
    ends = now + TICKET_MS
    redis.pcall('HSET', row.waiting, sub(ticket, 26, 57), ends .. rest)
  end
  if ends > now then return ends, rest end
  leave_queue(row, ticket)
  return nil
end

-- The first ticket in the queue before this one (nil: before all), and when it is forgotten.
-- Readers wait for writers only.
local function first_ahead(row, ticket, writers_only)
  local from, step = 0, writers_only and 16 or 1
  while true do
    local some = call('ZRANGE', row.queue, from, from + step - 1)
    for _, ahead in ipairs(some) do
      if ticket and ahead >= ticket then return nil end
      if writers_only and sub(ahead, 58) ~= 'e' then
        from = from + 1
      else
        local ends = alive(row, ahead)
        if ends then return ahead, ends end
      end
    end
    if #some < step then return nil end
  end
end

-- How many listen there. In a cluster the channel may have moved away, and then nobody does.
local function tell(channel, about)
  if publish == 'PUBLISH' then return call('PUBLISH', channel, about) end
  local listeners = redis.pcall(publish, channel, about)
  return type(listeners) == 'number' and listeners or 0
end

local function slots_taken(row, by_others)
  local sum = 0
  for _, member in ipairs(call('ZRANGE', row.ends, 0, -1)) do
    local by, slots = match(member, '^(%x+):(%d+)$')
    if not by_others or by ~= owner and by ~= instead then sum = sum + slots end
  end
  return sum
end

-- Tells a waiter that it is its turn. One that does not hear of it is dead, or about to listen again.
local function is_told(row, ends, entry, by, mode, channel)
  local hears = by == owner or tell(channel, by) > 0
  if by ~= owner and (mode == 'e' or not hears) and ends > now + WOKEN_MS then
    redis.pcall('HSET', row.waiting, by, (now + WOKEN_MS) .. entry)
  end
  return hears
end

local CHANNEL_AND_IDENTITY = '^' .. string.rep('\n[^\n]*', 6) .. '\n([^\n]*)\n([^\n]*)'

-- Those whose identity holds the row wait for other holders alone, and not for those ahead of them. From this place of
-- the queue on.
local function wake_own(row, from)
  if row.value ~= '+shared' and row.value ~= '+same' then return end
  local holds, all, exclusive  -- how many each identity has; of all, and of those how many exclusively
  while true do
    local ticket = call('ZRANGE', row.queue, from, from)[1]
    if not ticket then return end
    local by, mode = sub(ticket, 26, 57), sub(ticket, 58)
    local channel, who = match(match(call('HGET', row.waiting, by) or '', '\n.*$') or '', CHANNEL_AND_IDENTITY)
    if who and who ~= '' and not holds then
      holds, all, exclusive = {}, 0, 0
      for _, text in ipairs(call('HVALS', row.holders)) do
        local record = parse(text)
        local of = holds[record.identity] or { all = 0, exclusive = 0 }
        holds[record.identity] = of
        all, of.all = all + 1, of.all + 1
        if record.mode == 'e' then exclusive, of.exclusive = exclusive + 1, of.exclusive + 1 end
      end
    end
    local own = who and who ~= '' and holds[who]
    local ends, entry
    if own and (mode == 's' and own.exclusive == exclusive or mode == 'e' and own.all == all) then
      ends, entry = alive(row, ticket)
      if not ends then from = from - 1 end
    end
    if ends then is_told(row, ends, entry, by, mode, channel) end
    from = from + 1
  end
end

-- Wakes those at the head of the queue who fit now, as if the ones before them held it already.
local function wake_next(row)
  local taken, readers, from = nil, false, 0
  while true do
    local ticket = call('ZRANGE', row.queue, from, from)[1]
    if not ticket then return end
    local ends, entry = alive(row, ticket)
    if ends then
      local by, mode = sub(ticket, 26, 57), sub(ticket, 58)
      local channel, who = match(entry, CHANNEL_AND_IDENTITY)
      local fits = true
      if sub(ticket, 1, 1) == '0' and who == '' then
        fits = not is_set(row) or call('ZCARD', row.ends) <= 1
      elseif mode == 'e' then
        fits = not row.value and not readers
      elseif mode == 's' then
        fits = not row.value or row.value == '+shared'
      else
        local record = parse(sub(entry, 61))
        taken = (taken or slots_taken(row)) + record.slots
        if taken > record.capacity then return end
      end
      if not fits then return wake_own(row, from) end
      if is_told(row, ends, entry, by, mode, channel) then
        if mode == 'e' then return wake_own(row, from + 1) end
        readers = true
      end
      from = from + 1
    end
  end
end

-- Drops holders that have ended. (An exclusive lock ends by itself.)
local function sweep(row)
  if not is_set(row) then return end
  local oldest = call('ZRANGE', row.ends, 0, 0, 'WITHSCORES')
  local has_records = call('EXISTS', row.holders) == 1
  if has_records and oldest[1] and tonumber(oldest[2]) > now then return end
  -- Some have ended. Or the server has evicted one of the keys: then their holders are told that they lost the lock.
  if not has_records then
    call('DEL', row.ends)
    oldest = {}
  end
  while oldest[1] and tonumber(oldest[2]) <= now do
    call('HDEL', row.holders, match(oldest[1], '^%x+'))
    call('ZREM', row.ends, oldest[1])
    oldest = call('ZRANGE', row.ends, 0, 0, 'WITHSCORES')
  end
  settle(row)
  wake_next(row)
end

local rows = {}
for i = 1, parts do
  local queue = KEYS[3 * i - 1]
  local side = sub(queue, 1, -6)
  local mode, slots, capacity = match(specs[i], '^(%l)(%d+):(%d+)')
  local row = {
    lock = KEYS[3 * i - 2], queue = queue, who = KEYS[3 * i],
    holders = side .. 'holders', ends = side .. 'ends', waiting = side .. 'waiting',
    part = i, spec = specs[i], mode = mode, slots = tonumber(slots), capacity = tonumber(capacity),
  }
  row.value = call('GET', row.lock)
  sweep(row)
  rows[i] = row
end

local function count_held(by)
  local held = 0
  for _, row in ipairs(rows) do
    row.hold = hold_of(row, by)
    if row.hold then held = held + 1 end
  end
  return held
end

-- What is held already goes on, from now; never shorter, as this may be a late copy of a message.
local function rearm()
  local answer = { 'granted' }
  for _, row in ipairs(rows) do
    local hold = row.hold
    if hold.number == 0 then hold.number = next_number() end
    local left = call('PTTL', row.lock)
    if row.value == owner then
      left = math.max(ttl, most_left(left, hold.text))
      -- First, as a server that is full refuses a script whose first change takes memory.
      call('PEXPIRE', row.lock, left)
      call('SET', row.who, make_record(hold.number, hold.spec, left), 'PX', left)
    else
      local member = owner .. ':' .. hold.slots
      local own = tonumber(call('ZSCORE', row.ends, member) or 0) - now
      own = math.max(ttl, most_left(own, hold.text))
      left = math.max(own, left)
      call('PEXPIRE', row.lock, left)
      call('HSET', row.holders, owner, make_record(hold.number, hold.spec, own))
      call('ZADD', row.ends, now + own, member)
      call('PEXPIRE', row.holders, left)
      call('PEXPIRE', row.ends, left)
    end
    answer[#answer + 1] = hold.number
  end
  save_counter()
  return answer
end
