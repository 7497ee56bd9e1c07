-- Redlock's phase two: a majority granted it, and these are its fences. Counts only if this is
-- still the hold of phase one. What the claim takes over ends now. The other holds of its identity get the
-- fence, too.
-- KEYS and ARGV as for phase one; ARGV 5: hold:fence,fence,…
-- Answer { 'ok' } or { 'lost' }
local CONFIRMED = '^[^\n]*(' .. string.rep('\n[^\n]*', 12) .. '\n)%x*\n(%d+)\n?(%d*)$'
local hold, list = match(ARGV[5], '^(%d+):(.*)$')
if count_held(owner) < parts then return { 'lost' } end
local _, present = more_of(rows[1], owner)
if present ~= hold then return { 'lost' } end
local largest = tonumber(call('HGET', FENCE, 'count') or 0)
local next_fence = string.gmatch(list, '%d+')
for _, row in ipairs(rows) do
  local fence = tonumber(next_fence())
  largest = math.max(largest, fence)
  local text = text_of(row, owner)
  -- Nothing is covered any more.
  local middle, attempt, floor = match(text, CONFIRMED)
  if identity == '' then
    text = string.format('%.0f%s\n%s', fence, middle, attempt)
  else
    -- Smaller than what phase one said here, if that came too late to be counted.
    local said, most = tonumber(match(text, '^%d+')), most_had(row)
    fence = math.max(fence, tonumber(floor) or said)
    text = string.format('%.0f%s\n%s\n%.0f', fence, middle, attempt, tonumber(floor) or said)
    set_most(row, most == said and fence or math.max(most, fence))
    share_fence(row, fence)
  end
  if row.value == owner then
    call('SET', row.who, text, 'KEEPTTL')
    if instead ~= '' then call('DEL', row.holders, row.ends) end
  else
    call('HSET', row.holders, owner, text)
    local before = instead ~= '' and hold_of(row, instead)
    if before then drop_holder(row, before) end
  end
end
call('HSET', FENCE, 'count', string.format('%.0f', largest))
return { 'ok' }
