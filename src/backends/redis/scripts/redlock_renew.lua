-- Redlock: renew, on one node. KEYS and ARGV as for phase one; answers as `renew`
if count_held(owner) < parts then return { 'lost' } end
keep_more(0)
extend_horizon()
return rearm()
