-- Redlock: holds nothing here, and waits with this ticket. Whoever was granted a minority gives way
-- to those before it.
-- KEYS and ARGV as for phase one; ARGV 3: the ticket's number. Answer 1
local ticket = (instead ~= '' and '0' or '1') ..
  string.format('%08x', 2147483647 - tonumber(ARGV[9])) ..
  string.format('%016.0f', tonumber(ARGV[3])) .. owner
for _, row in ipairs(rows) do
  local held = hold_of(row, owner)
  if held then drop_holder(row, held) end
  local before = queued_at(row)
  if before and before ~= ticket then leave_queue(row, before, owner) end
  if row.mode == 'e' or instead == '' then
    call('ZADD', row.queue, 0, ticket)
    if row.mode == 'e' then call('ZADD', row.writers, 0, ticket) end
    call('HSET', row.waiting, owner, ticket .. '\n' .. make_record(tonumber(ARGV[3]), row.spec))
    call('ZADD', row.alive, now + TICKET_MS, ticket)
    for _, key in ipairs({ row.queue, row.writers, row.alive, row.waiting }) do
      call('PEXPIRE', key, 2 * TICKET_MS)
    end
  end
  if held or before ~= ticket then wake_next(row) end
end
if tonumber(ARGV[3]) > tonumber(call('HGET', FENCE, 'ticket') or 0) then
  call('HSET', FENCE, 'ticket', ARGV[3])
end
return 1
