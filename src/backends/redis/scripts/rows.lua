-- The rules of exclusion and order over the keys of a resource, a row:
--
--   lock     the owner of an exclusive lock; or what it is held as by those in `holders`:
--            +shared, +slots:CAPACITY, +same (one identity, at least one of its locks exclusive).
--            Anything else was set by another program, and counts as an exclusive lock.
--   who      string: the record of the exclusive owner
--   holders  hash: owner -> record          ends     sorted set: owner:slots -> when it ends, in ms
--   queue    sorted set of tickets, by text writers  the same, only those who want it exclusively
--   alive    sorted set: ticket -> when its place is forgotten, in ms
--   waiting  hash: owner -> ticket, newline, record
--
-- A record is number, owner, spec, priority, channel, identity, label, host, pid, tied: a line each.
-- The number is the fence, or in the queue the ticket's number; both are microseconds of the
-- server's clock, so they also say since when. A ticket begins with 0 if its owner holds already
-- and wants more, else with 1; then come its priority, its number and its owner.
local call = redis.call
local owner, ttl, tail, home = ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[5]
local identity, instead = ARGV[6], ARGV[7]
local parts = (#KEYS - 1) / 3
local TICKET_MS = 3000  -- a place in the queue lasts this long without a heartbeat
local WOKEN_MS = 1000   -- and this long when its owner was told that it is its turn
local FOREIGN_MS = 200  -- how often the first in line looks at a lock of another program

local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Larger than any number before, and not behind the clock.
local counter
local function next_number()
  if not counter then
    counter = math.max(tonumber(call('GET', KEYS[#KEYS]) or 0), now_us - 1)
  end
  counter = counter + 1
  return counter
end
local function save_counter()
  if counter then call('SET', KEYS[#KEYS], string.format('%.0f', counter)) end
end

local function make_record(number, spec)
  return string.format('%.0f', number) .. '\n' .. owner .. '\n' .. spec .. tail
end

local function parse(record)
  if not record then return nil end
  local r = {}
  r.number, r.owner, r.spec, r.mode, r.slots, r.capacity, r.ancestor, r.priority, r.home,
    r.identity, r.label =
    string.match(record, '^(%d+)\n(%x+)\n((%l)(%d+):(%d+):(%d))\n(%-?%d+)\n([^\n]*)\n([^\n]*)\n([^\n]*)')
  if not r.number then return nil end
  r.number, r.slots = tonumber(r.number), tonumber(r.slots)
  return r
end

local function same_identity(record)
  return identity ~= '' and record ~= nil and record.identity == identity
end

local function is_set(row) return row.value and string.sub(row.value, 1, 1) == '+' end

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

-- After holders went: the lock's key says again what is left.
local function settle(row)
  local last = call('ZRANGE', row.ends, -1, -1, 'WITHSCORES')
  if #last == 0 then
    call('DEL', row.lock, row.holders, row.ends)
    row.value = false
  elseif row.value == '+same' then
    for _, record in ipairs(call('HVALS', row.holders)) do
      if parse(record).mode == 'e' then return end
    end
    row.value = '+shared'
    redis.pcall('SET', row.lock, row.value, 'PX', math.max(1, last[2] - now))
  end
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

local function leave_queue(row, ticket, by)
  call('ZREM', row.queue, ticket)
  call('ZREM', row.writers, ticket)
  call('ZREM', row.alive, ticket)
  call('HDEL', row.waiting, by)
end

-- Its turn has come. True: somebody listens there.
local function wake(row, ticket, record)
  if record.owner == owner then return true end
  local listeners = call(ARGV[10], record.home, record.owner)
  local ends = tonumber(call('ZSCORE', row.alive, ticket) or 0)
  if ends > now + WOKEN_MS then redis.pcall('ZADD', row.alive, now + WOKEN_MS, ticket) end
  return listeners > 0
end

local function slots_taken(row)
  local sum = 0
  for _, member in ipairs(call('ZRANGE', row.ends, 0, -1)) do
    local by, slots = string.match(member, '^(%x+):(%d+)$')
    if by ~= owner and by ~= instead then sum = sum + slots end
  end
  return sum
end

-- Wakes those at the head of the queue who fit now, as if the ones before them held it already.
local function wake_next(row)
  local taken, readers, from = nil, false, 0
  while true do
    local tickets = call('ZRANGE', row.queue, from, from + 31)
    for _, ticket in ipairs(tickets) do
      local text = call('HGET', row.waiting, string.sub(ticket, 26))
      local record = parse(text and string.sub(text, 59))
      if record then
        if string.sub(ticket, 1, 1) == '0' then
          if not is_set(row) or call('ZCARD', row.ends) <= 1 or record.identity ~= '' then
            wake(row, ticket, record)
          end
          return
        elseif record.mode == 'e' then
          if row.value or readers or wake(row, ticket, record) then return end
        elseif record.mode == 's' then
          if row.value and row.value ~= '+shared' then return end
          readers = wake(row, ticket, record) or readers
        else
          taken = (taken or slots_taken(row)) + record.slots
          if taken > tonumber(record.capacity) then return end
          if not wake(row, ticket, record) then taken = taken - record.slots end
        end
      end
    end
    if #tickets < 32 then return end
    from = from + 32
  end
end

-- Drops what has ended. What is left of a lock whose key is gone goes with it.
local function sweep(row)
  local dropped = false
  if is_set(row) then
    local ended = call('ZRANGEBYSCORE', row.ends, '-inf', now)
    for _, member in ipairs(ended) do
      call('HDEL', row.holders, string.match(member, '^%x+'))
      call('ZREM', row.ends, member)
      dropped = true
    end
    if dropped then settle(row) end
  end
  for _, ticket in ipairs(call('ZRANGEBYSCORE', row.alive, '-inf', now)) do
    leave_queue(row, ticket, string.sub(ticket, 26))
    dropped = true
  end
  if dropped then wake_next(row) end
end

local function open_row(i)
  local queue = KEYS[3 * i - 1]
  local side = string.sub(queue, 1, -6)
  local spec = ARGV[10 + i]
  local mode, slots, capacity = string.match(spec, '^(%l)(%d+):(%d+)')
  local row = {
    lock = KEYS[3 * i - 2], queue = queue, who = KEYS[3 * i],
    holders = side .. 'holders', ends = side .. 'ends', writers = side .. 'writers',
    alive = side .. 'alive', waiting = side .. 'waiting',
    part = i, spec = spec, mode = mode, slots = tonumber(slots), capacity = tonumber(capacity),
  }
  row.value = call('GET', row.lock)
  sweep(row)
  return row
end

local rows = {}
for i = 1, parts do rows[i] = open_row(i) end

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
    local record = make_record(hold.number, hold.spec)
    local left = math.max(ttl, call('PTTL', row.lock))
    -- First, as a server that is full refuses a script whose first change takes memory.
    call('PEXPIRE', row.lock, left)
    if row.value == owner then
      call('SET', row.who, record, 'PX', left)
    else
      local member = owner .. ':' .. hold.slots
      call('HSET', row.holders, owner, record)
      call('ZADD', row.ends, math.max(now + ttl, tonumber(call('ZSCORE', row.ends, member) or 0)), member)
      call('PEXPIRE', row.holders, left)
      call('PEXPIRE', row.ends, left)
    end
    answer[#answer + 1] = hold.number
  end
  save_counter()
  return answer
end
