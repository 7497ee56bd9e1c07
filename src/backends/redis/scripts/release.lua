local held, queued = released and 1 or 0, false
-- All of it goes before anybody is told, which may be refused.
for _, row in ipairs(rows) do
  row.hold = hold_of(row, owner)
  row.entry = call('HGET', row.waiting, owner)
  if row.hold then
    drop_holder(row, row.hold)
    held = held + 1
  end
  if row.entry then
    leave_queue(row, match(row.entry, '\n([^\n]*)'))
    queued = true
  end
end
for _, row in ipairs(rows) do
  -- Taken away by somebody else: its holder should look.
  local hold = row.hold
  if hold and not by_own_client and hold.home ~= home and hold.home ~= '' then tell(hold.home, owner) end
  if hold or row.entry or released then wake_next(row) end
end
if held == #rows then return 1 end
return held == 0 and queued and 2 or 0
