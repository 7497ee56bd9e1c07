local again = count_held(owner) == parts
local hold = string.format('%.0f', node.count + 1)
local upgrades = false
if again then
  keep_more(attempt)
  local _, before = more_of(rows[1], owner)
  hold = before or '0'
else
  for _, row in ipairs(rows) do
    local before = hold_of(row, instead)
    upgrades = upgrades or (before and before.mode == 's' and row.mode == 'e')
  end
  with_more(now, tonumber(hold), upgrades and instead or '', attempt)
end

local place  -- its number in the queues
local in_queue = false
for _, row in ipairs(rows) do
  local ticket = queued_at(row)
  local number = ticket and tonumber(sub(ticket, 10, 25))
  if ticket and agreed and number ~= agreed then
    leave_queue(row, ticket)
  elseif ticket then
    in_queue, place = true, number
  end
end
place = place or agreed or new_place()

-- The first number that is asked for is the ticket's, if it needs one. One number is enough for
-- all parts: a fence is compared with those of the same resource only.
local asks_for_ticket = not again and not in_queue and (sub(flags, 1, 1) == '1' or instead ~= '')
next_number = function()
  if asks_for_ticket then
    asks_for_ticket = false
    return place
  end
  return tonumber(hold)
end

-- What an upgrade takes over goes when it is confirmed, and is back when it is not.
local drop_really = drop_holder
if upgrades then drop_holder = function() end end
local answer = claim()
drop_holder = drop_really

if answer[1] == 'granted' then
  if not again then call('HSET', FENCE, 'count', hold) end
  if not again and identity ~= '' then
    for i, row in ipairs(rows) do
      local fence, most = answer[i + 1], most_had(row)
      share_fence(row, 0)
      local is_shared = fence ~= tonumber(hold)
      call('HSET', row.holders, owner,
        with_fence(call('HGET', row.holders, owner), fence, is_shared and fence or most))
      set_most(row, math.max(most, fence))
    end
  end
  extend_horizon()
  table.insert(answer, 2, tonumber(hold))
elseif answer[1] == 'queued' then
  if place > node.ticket then call('HSET', FENCE, 'ticket', string.format('%.0f', place)) end
  answer[4] = place
end
return answer
