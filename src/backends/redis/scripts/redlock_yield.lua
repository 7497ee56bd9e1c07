-- Redlock: holds nothing here, and waits with this ticket. Whoever was granted a minority gives way
-- to those before it.
-- KEYS and ARGV as for phase one. Answer 1; 0: a newer attempt holds it
local number, attempt = string.match(ARGV[3], '^(%d+):(%d+)$')
if is_newer(tonumber(attempt)) then return 0 end
local ticket = (instead ~= '' and '0' or '1') ..
  string.format('%08x', 2147483647 - tonumber(ARGV[9])) ..
  string.format('%016.0f', tonumber(number)) .. owner
for _, row in ipairs(rows) do
  local held = hold_of(row, owner)
  if held then drop_holder(row, held) end
  local before = queued_at(row)
  if before and before ~= ticket then leave_queue(row, before, owner) end
  if row.mode == 'e' or instead == '' then
    call('ZADD', row.queue, 0, ticket)
    if row.mode == 'e' then call('ZADD', row.writers, 0, ticket) end
    call('HSET', row.waiting, owner, ticket .. '\n' .. make_record(tonumber(number), row.spec))
    call('ZADD', row.alive, now + TICKET_MS, ticket)
    for _, key in ipairs({ row.queue, row.writers, row.alive, row.waiting }) do
      call('PEXPIRE', key, 2 * TICKET_MS)
    end
  end
  if held or before ~= ticket then wake_next(row) end
end
if tonumber(number) > tonumber(call('HGET', FENCE, 'ticket') or 0) then
  call('HSET', FENCE, 'ticket', number)
end
return 1
