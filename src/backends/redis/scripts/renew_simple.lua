-- renew: starts the TTL of what the owner holds anew; never creates, never shortens.
-- KEYS and ARGV as for acquire. Answer the fence as a number, { 'granted', fences… }, { 'lost' }
if not ARGV[4] and redis.call('GET', KEYS[1]) == ARGV[1] then
  local who = redis.call('GET', KEYS[3])
  -- Nothing new about its holder. (The first flag says whether it may queue.)
  if who and string.sub(who, 1 - #ARGV[3]) == string.sub(ARGV[3], 2) then
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      redis.call('PEXPIRE', KEYS[3], ARGV[2])
    end
    return tonumber(string.match(who, '^%d+'))
  end
end
