-- Redlock: release, on one node. KEYS and ARGV as for `release`; ARGV 5: the number of the attempt that is
-- undone, if not all of it is. Answers as `release`
if ARGV[5] and is_newer(tonumber(ARGV[5])) then return 0 end
-- Below an upgrade that is not confirmed yet: the upgrade's end must not bring it back.
if not ARGV[5] then
  for _, row in ipairs(rows) do
    if row.value and row.value ~= owner and not is_set(row) and call('HDEL', row.holders, owner) == 1 then
      call('ZREM', row.ends, owner .. ':1')
    end
  end
end
