-- renew: make the leases of running entries begin anew, for those who hold them.
-- Moves: none
-- KEYS: 1 stream, 2.. dedupe keys of the jobs that have one
-- ARGV: 1 consumer, then per entry: id, deliveries, job, position of its dedupe key in KEYS or 0
-- Returns: pairs index (from 0), word of those not renewed: LOST (another holds it, or the group
--       was lost) or CANCELLED (the entry is gone)
-- Cost: O(entries); about 3 us each, 500 at most
-- @include fence
-- @include ttl
local stream, consumer = KEYS[1], ARGV[1]

redis.call('XACK', stream, 'workers', '0-1')
local words, ids = {}, {}
for i = 2, #ARGV, 4 do
  local id = ARGV[i]
  if held(stream, id, consumer, ARGV[i + 1]) then
    ids[#ids + 1] = id
    local key = KEYS[tonumber(ARGV[i + 3])]
    -- A job that runs for days must not lose its dedupe key to the TTL.
    if key and redis.call('PTTL', key) < KEY_TTL / 2 and redis.call('GET', key) == ARGV[i + 2] then
      redis.call('PEXPIRE', key, KEY_TTL)
    end
  else
    words[#words + 1] = (i - 2) / 4
    words[#words + 1] = #redis.call('XRANGE', stream, id, id) > 0 and 'LOST' or 'CANCELLED'
  end
end
-- JUSTID keeps the delivery count; a plain XCLAIM by a former holder would steal, hence the fence.
if #ids > 0 then
  ids[#ids + 1] = 'JUSTID'
  redis.call('XCLAIM', stream, 'workers', consumer, 0, unpack(ids))
end
return words
