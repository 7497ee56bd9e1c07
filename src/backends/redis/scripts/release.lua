local held, queued = released, false
for _, row in ipairs(rows) do
  local hold = hold_of(row, owner)
  if hold then
    drop_holder(row, hold)
    held = true
    -- Taken away by somebody else: its holder should look.
    if hold.home ~= home and hold.home ~= '' then tell(hold.home, owner) end
  end
  local entry = call('HGET', row.waiting, owner)
  if entry then
    leave_queue(row, match(entry, '\n([^\n]*)'))
    queued = true
  end
  if hold or entry or released then wake_next(row) end
end
return held and 1 or queued and 2 or 0
