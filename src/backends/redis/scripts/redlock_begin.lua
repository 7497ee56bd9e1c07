-- Redlock's acquire, phase one: as `acquire`, on one node.
-- KEYS and ARGV as for acquire, the node's hash in place of the fence, and ARGV 4 always, '-' for a
-- simple claim; ARGV 5, with colons between: the ticket's number that the nodes agreed on, or 0; the
-- number of the attempt; what to agree on, if it needs a ticket; the server's run_id, if it is known
-- Answer { 'granted', hold, numbers… }, { 'queued', ahead, look again in ms, ticket's number },
--        { 'new', ms left to wait }, or what acquire answers
local KEYS, ARGV = KEYS, ARGV
local agreed, attempt, proposed, run = string.match(ARGV[5], '^(%d+):(%d+):(%d+):(%x+)$')
agreed, attempt, proposed = tonumber(agreed), tonumber(attempt), tonumber(proposed)
if agreed == 0 then agreed = nil end
local node = open_node(KEYS[#KEYS], run)
if not node.ready then
  return { 'new', node.wait and math.max(0, node.wait - node.now) or -1 }
end

-- A new ticket's number. All nodes say the same if the client's clock is not far from theirs and
-- nobody came in between.
local function new_place()
  local wanted = math.abs(proposed - node.now_us) < 1000000 and proposed or node.now_us
  return math.max(wanted, node.ticket + 1)
end
