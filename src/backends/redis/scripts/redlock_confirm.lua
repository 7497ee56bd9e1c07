-- Redlock's phase two: a majority granted it, and these are its fences. Counts only if this is
-- still the hold of phase one. What the claim takes over ends now.
-- KEYS and ARGV as for phase one; ARGV 5: hold:fence,fence,…
-- Answer { 'ok' } or { 'lost' }
local hold, list = match(ARGV[5], '^(%d+):(.*)$')
if count_held(owner) < parts then return { 'lost' } end
local _, present = more_of(rows[1], owner)
if present ~= hold then return { 'lost' } end
local largest = tonumber(call('HGET', FENCE, 'count') or 0)
local next_fence = string.gmatch(list, '%d+')
for _, row in ipairs(rows) do
  local fence = next_fence()
  largest = math.max(largest, tonumber(fence))
  local text = text_of(row, owner)
  text = fence .. sub(text, string.find(text, '\n', 1, true), -1)
  -- Nothing is covered any more.
  text = string.gsub(text, '\n%x*\n(%d+)$', '\n\n%1')
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
