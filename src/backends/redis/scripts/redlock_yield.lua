-- Redlock: holds nothing here, and waits with this ticket. Whoever was granted a minority gives way
-- to those before it.
-- KEYS and ARGV as for phase one. Answer 1; 0: a newer attempt holds it
local number, attempt = match(ARGV[5], '^(%d+):(%d+)$')
if is_newer(tonumber(attempt)) then return 0 end
local ticket = (instead ~= '' and '0' or '1') ..
  string.format('%08x', 2147483647 - tonumber(priority)) ..
  string.format('%016.0f', tonumber(number)) .. owner
for _, row in ipairs(rows) do
  local held = hold_of(row, owner)
  if held then drop_holder(row, held) end
  local own, before = ticket .. row.mode, queued_at(row)
  if before and before ~= own then leave_queue(row, before) end
  if row.mode == 'e' or instead == '' then
    call('ZADD', row.queue, 0, own)
    call('HSET', row.waiting, owner, (now + TICKET_MS) .. '\n' .. own .. '\n' ..
      make_record(tonumber(number), row.spec))
    call('PEXPIRE', row.queue, 2 * TICKET_MS)
    call('PEXPIRE', row.waiting, 2 * TICKET_MS)
  end
  if held or before ~= own then wake_next(row) end
end
if tonumber(number) > tonumber(call('HGET', FENCE, 'ticket') or 0) then
  call('HSET', FENCE, 'ticket', number)
end
return 1
