-- Redlock: release, on one node. KEYS and ARGV as for `release`; ARGV 5: the number of the attempt that is
-- undone, if not all of it is. Answers as `release`
if ARGV[5] and is_newer(tonumber(ARGV[5])) then return 0 end
