-- mend: looks at a node's state, and gives one that lost its data a state again.
-- KEYS   the node's hash
-- ARGV   1 'look'; 'wait', incarnation, ms: may be repaired in so long, unless that is set already;
--        'repair', incarnation, count: is ready from now on, if its wait is over
-- Answer ready (1, 0), count, ms until its last hold ends, ms left to wait (-1: not set), now in
--        us, incarnation
local node = open_node(KEYS[1])
if not node.ready and ARGV[2] == node.born then
  if ARGV[1] == 'wait' and not node.wait then
    node.wait = node.now + tonumber(ARGV[3])
    redis.call('HSET', node.key, 'wait', string.format('%.0f', node.wait), 'length', ARGV[3])
  elseif ARGV[1] == 'repair' and node.wait and node.wait <= node.now then
    node.ready, node.count = true, math.max(node.count, tonumber(ARGV[3]))
    redis.call('HSET', node.key, 'ready', '1', 'count', string.format('%.0f', node.count))
    redis.call('HDEL', node.key, 'wait', 'length')
  end
end
return {
  node.ready and 1 or 0, node.count, math.max(0, node.ends - node.now),
  node.wait and math.max(0, node.wait - node.now) or -1, node.now_us, node.born,
}
