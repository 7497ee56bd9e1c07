-- Redlock's acquire, phase one: as `acquire`, on one node.
-- KEYS and ARGV as for acquire, the node's hash in place of the fence, and ARGV 4 always; ARGV 5:
-- the ticket's number that the nodes agreed on, or 0, and the number of the attempt, with a colon
-- between
-- Answer { 'granted', hold, numbers… }, { 'queued', ahead, look again in ms, ticket's number },
--        { 'new', ms left to wait }, or what acquire answers
local node = open_node(KEYS[#KEYS])
if not node.ready then
  return { 'new', node.wait and math.max(0, node.wait - node.now) or -1 }
end
