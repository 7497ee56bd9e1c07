-- Redlock: release, on one node. KEYS and ARGV as for phase one; ARGV 5: 'all', or the number of the
-- attempt that is undone. Answers as `release`
if ARGV[5] ~= 'all' and is_newer(tonumber(ARGV[5])) then return 0 end
local released = false
