-- What is different about the rows of a Redlock's node. Its records have four more lines: since
-- when it is held (ms); the number of this very hold; of an upgrade that is not confirmed yet, the
-- owner whose shared hold is covered by it; and which of the client's attempts it is the work of,
-- so that what undoes one attempt, and comes late, leaves the next one alone. That of an identity has one more:
-- the floor of its fence. Another claim of the identity may have got as large a fence here, so that phase two
-- must not make it smaller.
local function text_of(row, by)
  if row.value == by then return call('GET', row.who) end
  return call('HGET', row.holders, by)
end
local MORE = '^' .. string.rep('[^\n]*\n', 11) .. '(%d+)\n(%d+)\n(%x*)\n(%d+)\n?(%d*)$'
local function more_of(row, by)
  local since, hold, covered, attempt, floor = match(text_of(row, by) or '', MORE)
  return since, hold, covered, attempt, floor
end
local function is_newer(attempt)  -- than this one: what is held
  for _, row in ipairs(rows) do
    if hold_of(row, owner) then
      local _, _, _, present = more_of(row, owner)
      if tonumber(present or 0) > attempt then return true end
    end
  end
  return false
end

local function queued_at(row)  -- its ticket there
  local entry = call('HGET', row.waiting, owner)
  return entry and match(entry, '\n([^\n]*)')
end

-- Numbers are the node's own business, see redlock_acquire.
next_number = function() return tonumber(call('HGET', FENCE, 'count') or 0) + 1 end
save_counter = function() end

local function with_more(since, hold, covered, attempt)
  tail = tail .. '\n' .. string.format('%.0f\n%.0f\n%s\n%.0f', since, hold, covered, attempt)
end
local function keep_more(attempt)  -- a record that is written anew keeps its lines
  local since, hold, covered, before = more_of(rows[1], owner)
  with_more(tonumber(since or now), tonumber(hold or 0), covered or '',
    math.max(attempt, tonumber(before or 0)))
  local floor = 0
  for _, row in ipairs(rows) do
    local _, _, _, _, own = more_of(row, owner)
    floor = math.max(floor, tonumber(own) or 0)
  end
  if floor > 0 then tail = tail .. string.format('\n%.0f', floor) end
end

-- The largest fence that an identity has had here, for 256 groups of resources: a node does not grow with its
-- past.
local function most_field(row) return 'same:' .. sub(redis.sha1hex(row.lock), 1, 2) end
local function most_had(row) return tonumber(call('HGET', FENCE, most_field(row)) or 0) end
local function set_most(row, fence) call('HSET', FENCE, most_field(row), string.format('%.0f', fence)) end

local FLOOR = '^[^\n]*(' .. string.rep('\n[^\n]*', 14) .. ')'
local function with_fence(text, fence, floor)
  return string.format('%.0f%s\n%.0f', fence, match(text, FLOOR), floor)
end

-- All other holds of the identity get this fence if it is larger, and keep what they have. So they have the same
-- one here, and who joins them gets it, whichever of them are left by then.
local function share_fence(row, fence)
  for _, record in ipairs(others(row)) do
    if record.identity == identity then
      local shared = math.max(fence, record.number)
      local text = with_fence(record.text, shared, shared)
      if text ~= record.text then call('HSET', row.holders, record.owner, text) end
    end
  end
end

local function extend_horizon()
  local ends, longest = unpack(call('HMGET', FENCE, 'until', 'longest'))
  local left = tonumber(ends or now) - now
  longest = left > 0 and tonumber(longest or left) or 0
  call('HSET', FENCE, 'until', string.format('%.0f', now + math.max(math.min(left, longest), ttl)),
    'longest', string.format('%.0f', math.max(longest, ttl)))
end

-- An upgrade that is taken back uncovers the shared hold below it. One that was granted, though
-- this node was not told, ends what it covers, too.
local drop_hold = drop_holder
drop_holder = function(row, record)
  local _, _, covered = more_of(row, record.owner)
  local plain = row.value == record.owner
  drop_hold(row, record)
  if not covered or covered == '' then return end
  if not plain then
    local below = instead == '' and hold_of(row, covered)
    if below then drop_hold(row, below) end
  elseif instead == '' then
    call('DEL', row.holders, row.ends)
  elseif call('HGET', row.holders, covered) then
    local last = call('ZRANGE', row.ends, -1, -1, 'WITHSCORES')
    if #last > 0 and tonumber(last[2]) > now then
      row.value = '+shared'
      call('SET', row.lock, row.value, 'PX', last[2] - now)
    end
  end
end
