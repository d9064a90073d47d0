-- take: claim entries that other workers gave back; none while the queue is paused.
-- Moves: waiting -> running
-- KEYS: 1 stream, 2 released, 3 suspects, 4 config
-- ARGV: 1 consumer, 2 entries at most
-- Returns: per entry: id, fields, deliveries, its suspect value or "", "" (no start to presume)
-- Cost: O(entries); about 6 us each
-- @include group
local stream, released, suspects = KEYS[1], KEYS[2], KEYS[3]
local consumer = ARGV[1]

redis.call('XACK', stream, 'workers', '0-1')
local taken = {}
if paused(KEYS[4]) then return taken end
for _, id in ipairs(redis.call('SRANDMEMBER', released, ARGV[2])) do
  -- A member that is no entry's id must not end every worker that comes by it.
  local ours = #id < 40 and string.find(id, '^%d+%-%d+$')
  local row = ours and redis.call('XPENDING', stream, 'workers', id, id, 1)[1]
  -- After the loss of the group, an entry of the set may have been delivered afresh: leave it alone.
  if row and row[2] == 'released' then
    local count = row[4] + 1
    local entry = redis.call('XCLAIM', stream, 'workers', consumer, 0, id, 'RETRYCOUNT', count)[1]
    if entry then
      taken[#taken + 1] = {id, entry[2], count, redis.call('HGET', suspects, id) or '', ''}
    else
      -- Deleted while pending: 6.2 keeps it claimed, newer servers do not.
      redis.call('XACK', stream, 'workers', id)
      redis.call('HDEL', suspects, id)
    end
  end
  redis.call('SREM', released, id)
end
return taken
