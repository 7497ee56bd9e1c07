local held = count_held(owner)
if held == parts then return rearm() end
-- It was granted all of it, and some is gone since. A claim never grows.
if held > 0 then return { 'lost' } end

-- Holders of another format have rules that are not known here.
for _, row in ipairs(rows) do
  local record
  if is_set(row) then
    local first = call('ZRANGE', row.ends, 0, 0)[1]
    record = first and call('HGET', row.holders, match(first, '^%x+'))
  elseif row.value then
    record = call('GET', row.who)
  end
  local by, made = match(record or '', '^%d+\n(%x+)\n([^\n]*)')
  made = match(made or '', '^..(%d+):') or '0'
  if by and (by == row.value or is_set(row)) and made ~= format then return { 'format', row.part, made } end
end

local ticket  -- its place in the queues, if it has one
for _, row in ipairs(rows) do
  local entry = call('HGET', row.waiting, owner)
  if entry then
    ticket = match(entry, '\n([^\n]*)')
    row.ticket = ticket
    call('PEXPIRE', row.queue, 2 * TICKET_MS)  -- so that it may go on waiting on a server that is full
  end
end
local was_queued = ticket ~= nil
local function leave_all()
  if not was_queued then return end
  for _, row in ipairs(rows) do
    if row.ticket then leave_queue(row, row.ticket) end  -- it may ask for another mode by now
  end
end

if instead ~= '' and count_held(instead) < parts then
  leave_all()
  for _, row in ipairs(rows) do  -- its place was before all others, and they waited for it
    if row.ticket then wake_next(row) end
  end
  return { 'lost' }
end

-- All who use a row use it in the same way. A lock that is free is used by those who wait.
for _, row in ipairs(rows) do
  local mode, capacity, label
  if row.value then
    local slots = match(row.value, '^%+slots:(%d+)$')
    mode, capacity = slots and 'n' or row.value == '+shared' and 's' or 'e', tonumber(slots or 0)
  else
    local first = first_ahead(row, nil, false)
    local entry = first and call('HGET', row.waiting, sub(first, 26, 57))
    local record = entry and parse(sub(match(entry, '\n.*$'), 61))
    if record then mode, capacity, label = record.mode, record.capacity, record.label end
  end
  if mode and ((mode == 'n') ~= (row.mode == 'n') or (mode == 'n' and capacity ~= row.capacity)) then
    local any = row.value and parse(is_set(row) and call('HVALS', row.holders)[1] or call('GET', row.who))
    return { 'wrong', row.part, mode, tostring(capacity or 0), any and any.label or label or '' }
  end
end

-- Two holders that want more would wait for each other.
if instead ~= '' then
  for _, row in ipairs(rows) do
    local first = row.mode == 'e' and first_ahead(row, nil, false)
    if first and sub(first, 1, 1) == '0' and sub(first, 26, 57) ~= owner then return { 'busy' } end
  end
end

local may_queue = sub(flags, 1, 1) == '1'
local one_shot = not ticket and not may_queue and instead == ''
if not ticket and not one_shot then
  ticket = (instead ~= '' and '0' or '1') .. string.format('%08x', 2147483647 - tonumber(priority)) ..
    string.format('%016.0f', next_number()) .. owner
end
ticket = ticket and sub(ticket, 1, 57)  -- the mode comes with the row

local function same_identity(record) return identity ~= '' and record.identity == identity end

-- In how many ms the first of the holders in its way ends; nil: there is none.
local function held_back_by_holders(row)
  if not row.value then return nil end
  if not is_set(row) then
    if row.value == instead then return nil end
    local left, record = call('PTTL', row.lock), call('GET', row.who)
    if match(record or '', '^%d+\n(%x+)') ~= row.value then
      return left < 0 and FOREIGN_MS or math.min(left, FOREIGN_MS)
    end
    local most = most_left(left, record)
    if most < left then
      call('PEXPIRE', row.lock, most)
      call('PEXPIRE', row.who, most)
    end
    return most
  end
  if row.mode == 'n' then
    if slots_taken(row, true) + row.slots <= row.capacity then return nil end
  elseif row.mode == 's' and row.value == '+shared' then
    return nil
  elseif identity ~= '' or instead ~= '' then
    local any = false
    for _, record in ipairs(others(row)) do
      any = any or not same_identity(record) and (row.mode == 'e' or record.mode == 'e')
    end
    if not any then return nil end
  end
  -- Those who seem to have more left than the one who is last have less than that one's TTL.
  while true do
    local last = call('ZRANGE', row.ends, -1, -1, 'WITHSCORES')
    local left = last[2] - now
    local most = most_left(left, call('HGET', row.holders, match(last[1], '^%x+')))
    if most >= left then break end
    call('ZADD', row.ends, now + most, last[1])
  end
  return call('ZRANGE', row.ends, 0, 0, 'WITHSCORES')[2] - now
end

-- Of the holds of the same identity that are at least as strong as `mode`, the one with the largest fence: with a
-- smaller one, a write would be refused after those of that hold.
local function own_hold(row, mode)
  if identity == '' or row.mode == 'n' or not is_set(row) then return nil end
  local newest
  for _, text in ipairs(call('HVALS', row.holders)) do
    local record = parse(text)
    local lends = record and same_identity(record) and (record.mode == 'e' or mode == 's')
    if lends and (not newest or record.number > newest.number) then newest = record end
  end
  return newest
end

-- Of a claim that takes over: no stronger than what it has here already, so nobody is in its way.
local function goes_on(row)
  return instead ~= '' and row.hold and not (row.hold.mode == 's' and row.mode == 'e')
end

local look
for _, row in ipairs(rows) do
  local ends
  if not goes_on(row) then
    ends = held_back_by_holders(row)
    -- Whoever waits may wait for this very identity: it must not wait for them.
    if not ends and not own_hold(row, 's') then
      local first, forgotten = first_ahead(row, ticket and ticket .. row.mode, row.mode == 's')
      ends = first and math.max(1, forgotten - now)
    end
  end
  if ends and (not look or ends < look) then look = ends end
end

if look then
  if not may_queue then return { 'busy' } end
  save_counter()
  local ahead = 0
  for _, row in ipairs(rows) do
    -- Of a claim that takes over, only the parts that become stronger wait.
    if row.mode == 'e' or sub(ticket, 1, 1) == '1' then
      local own = ticket .. row.mode
      call('ZADD', row.queue, 0, own)
      call('HSET', row.waiting, owner, (now + TICKET_MS) .. '\n' .. own .. '\n' ..
        make_record(tonumber(sub(own, 10, 25)), row.spec))
      call('PEXPIRE', row.queue, 2 * TICKET_MS)
      call('PEXPIRE', row.waiting, 2 * TICKET_MS)
      ahead = math.max(ahead, call('ZRANK', row.queue, own))
    end
  end
  -- The second in line looks after the first, who may have been killed just when it was woken.
  if ahead == 1 then look = math.min(look, WOKEN_MS / 2) end
  return { 'queued', ahead, math.max(1, look) }
end

leave_all()
local answer = { 'granted' }
for _, row in ipairs(rows) do
  local before = instead ~= '' and row.hold or nil
  local mode_before = before and before.mode or row.mode
  -- Not a new grant: a hold that goes on, no stronger than it was. And the same identity gets its
  -- own claim back: with a fresh fence, its outer writes would be refused after its inner ones.
  local stronger = mode_before == 's' and row.mode == 'e'
  local number
  if before and not stronger then
    number = before.number
  else
    local own = own_hold(row, row.mode)
    number = own and own.number
  end
  if not number or number == 0 then number = next_number() end
  if before then drop_holder(row, before) end
  local record = make_record(number, row.spec)
  if row.mode == 'e' and identity == '' then
    call('SET', row.lock, owner, 'PX', ttl)
    call('SET', row.who, record, 'PX', ttl)
    row.value = owner
  else
    local left, first = ttl, not row.value
    if not first then left = math.max(left, call('PTTL', row.lock)) end
    if row.mode == 'n' then
      row.value = '+slots:' .. string.format('%.0f', row.capacity)
    elseif row.mode == 'e' or row.value == '+same' then
      row.value = '+same'
    else
      row.value = '+shared'
    end
    -- Before anything else: a server that is full refuses it if it is the first change.
    call('SET', row.lock, row.value, 'PX', left)
    if first then call('DEL', row.holders, row.ends) end
    call('HSET', row.holders, owner, record)
    call('ZADD', row.ends, now + ttl, owner .. ':' .. row.slots)
    call('PEXPIRE', row.holders, left)
    call('PEXPIRE', row.ends, left)
  end
  -- Who was woken together with this claim, and asked before it, was told to wait, and may fit, too. And so may others
  -- of its identity, now that it holds this row.
  local lets_in = identity ~= ''
  if row.mode == 'n' then lets_in = row.ticket end
  if lets_in or mode_before ~= row.mode and not stronger then wake_next(row) end
  answer[#answer + 1] = number
end
save_counter()
return answer
