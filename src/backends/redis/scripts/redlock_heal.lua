-- Redlock: a node that lost a lease which a majority has just confirmed holds it again, unless
-- somebody else has it here. KEYS and ARGV as for phase one; ARGV 5: fence,fence,… Answer 1 or 0
if count_held(owner) > 0 then return 0 end
for _, row in ipairs(rows) do
  local free = not row.value or (row.mode == 's' and row.value == '+shared')
  if not free and identity ~= '' and is_set(row) then
    free = true
    for _, record in ipairs(others(row)) do free = free and record.identity == identity end
  end
  if not free then return 0 end
end
local hold = tonumber(call('HGET', FENCE, 'count') or 0) + 1
with_more(now, hold, '', 2 ^ 52)
local largest = hold
local next_fence = string.gmatch(ARGV[5], '%d+')
for _, row in ipairs(rows) do
  local ticket = queued_at(row)
  if ticket then leave_queue(row, ticket) end
  local fence = tonumber(next_fence())
  local record
  if identity == '' then
    record = make_record(fence, row.spec)
  else
    -- Another claim of the identity may have got a larger one here, and be gone.
    fence = math.max(fence, most_had(row))
    set_most(row, fence)
    if is_set(row) then share_fence(row, fence) end
    record = with_fence(make_record(fence, row.spec), fence, fence)
  end
  largest = math.max(largest, fence)
  if row.mode == 'e' and identity == '' then
    call('SET', row.lock, owner, 'PX', ttl)
    call('SET', row.who, record, 'PX', ttl)
  else
    local left = ttl
    if row.value then left = math.max(left, call('PTTL', row.lock)) else call('DEL', row.holders, row.ends) end
    row.value = (row.mode == 'e' or row.value == '+same') and '+same' or '+shared'
    call('HSET', row.holders, owner, record)
    call('ZADD', row.ends, now + ttl, owner .. ':' .. row.slots)
    call('SET', row.lock, row.value, 'PX', left)
    call('PEXPIRE', row.holders, left)
    call('PEXPIRE', row.ends, left)
  end
end
call('HSET', FENCE, 'count', string.format('%.0f', largest))
extend_horizon()
return 1
