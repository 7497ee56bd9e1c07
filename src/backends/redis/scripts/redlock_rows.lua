-- What is different about the rows of a Redlock's node. Its records have three more lines: since
-- when it is held (ms), the number of this very hold, and of an upgrade that is not confirmed yet
-- the owner whose shared hold is covered by it.
local function text_of(row, by)
  if row.value == by then return call('GET', row.who) end
  return call('HGET', row.holders, by)
end
local MORE = '^' .. string.rep('[^\n]*\n', 10) .. '(%d+)\n(%d+)\n(%x*)'
local function more_of(row, by)
  local since, hold, covered = string.match(text_of(row, by) or '', MORE)
  return since, hold, covered
end

local function queued_at(row)  -- its ticket there
  local text = call('HGET', row.waiting, owner)
  return text and string.sub(text, 1, 57)
end

-- Numbers are the node's own business, see redlock_acquire.
next_number = function() return tonumber(call('HGET', FENCE, 'count') or 0) + 1 end
save_counter = function() end

local function keep_more()  -- a record that is written anew keeps its lines
  local since, hold, covered = more_of(rows[1], owner)
  tail = tail .. '\n' .. (since or now) .. '\n' .. (hold or 0) .. '\n' .. (covered or '')
end

local function extend_horizon()
  if now + ttl > tonumber(call('HGET', FENCE, 'until') or 0) then
    call('HSET', FENCE, 'until', string.format('%.0f', now + ttl))
  end
end

-- An upgrade that is taken back uncovers the shared hold below it.
local drop_hold = drop_holder
drop_holder = function(row, record)
  local _, _, covered = more_of(row, record.owner)
  local plain = row.value == record.owner
  drop_hold(row, record)
  if plain and covered and covered ~= '' and call('HEXISTS', row.holders, covered) == 1 then
    local last = call('ZRANGE', row.ends, -1, -1, 'WITHSCORES')
    if #last > 0 and tonumber(last[2]) > now then
      row.value = '+shared'
      call('SET', row.lock, row.value, 'PX', last[2] - now)
    end
  end
end
