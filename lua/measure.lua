-- measure: add how long jobs waited and ran to the hashes of this minute, which lives 2 h, and of this hour,
-- which lives 26 h. A worker says it once a second, for with each batch it would cost as much as settling it.
-- Moves: none
-- KEYS: 1 stream, 2 metrics base
-- ARGV: 1 clock, then triples: kind, field, what to add. Fields: ran (handlers that ended), run_us and wait_ms
--       (sums), run.<bucket> and wait.<bucket> (how many in each bucket: docs/protocol.md)
-- Returns: 1
-- Cost: O(fields); about 2 us each, 500 at most
-- @include now
redis.call('XACK', KEYS[1], 'workers', '0-1')
local now = now_ms(ARGV[1])
local minute = KEYS[2] .. string.format('times:%d', math.floor(now / 60000))
local hour = KEYS[2] .. string.format('times:%dh', math.floor(now / 3600000))

for i = 2, #ARGV, 3 do
  local name, n = ARGV[i + 1] .. ':' .. ARGV[i], tonumber(ARGV[i + 2])
  -- A field that is new may be in a hash that is new.
  if redis.call('HINCRBY', minute, name, ARGV[i + 2]) == n then redis.call('PEXPIRE', minute, 7200000) end
  if redis.call('HINCRBY', hour, name, ARGV[i + 2]) == n then redis.call('PEXPIRE', hour, 93600000) end
end
return 1
