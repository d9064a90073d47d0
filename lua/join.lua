-- join: be ready to work on a queue: make its group where there is none, and settle on its lease.
-- Behind a write that needs no memory, for a worker must start where memory is full: it alone can
-- free some. The group begins at 0, never at $: what waits already must be seen.
-- Moves: none
-- KEYS: 1 stream, 2 config
-- ARGV: 1 the lease in ms for a queue that has none
-- Returns: the queue's lease in ms, the server's time in ms
-- Cost: O(1); about 5 us
-- @include now
local stream, config = KEYS[1], KEYS[2]

redis.call('XACK', stream, 'workers', '0-1')
local made = redis.pcall('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
if made.err and not string.find(tostring(made.err), 'BUSYGROUP', 1, true) then return made end
redis.call('HSETNX', config, 'lease_ms', ARGV[1])
return {tonumber(redis.call('HGET', config, 'lease_ms')), now_ms('')}
