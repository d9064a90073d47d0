-- join: be ready to work on a queue: make its group where there is none, and settle on its lease.
-- Behind a write that needs no memory, for a worker must start where memory is full: it alone can
-- free some.
-- Moves: none
-- KEYS: 1 stream, 2 config, 3 totals
-- ARGV: 1 the lease in ms for a queue that has none, 2 1 if the caller has seen the group before: that
--       it is gone is counted as `regrouped`
-- Returns: the queue's lease in ms, the server's time in ms
-- Cost: O(1); about 5 us
-- @include now
-- @include group
local stream, config, totals = KEYS[1], KEYS[2], KEYS[3]

redis.call('XACK', stream, 'workers', '0-1')
local failed, made = make_group(stream, config)
if failed then return failed end
if made and ARGV[2] == '1' then redis.pcall('HINCRBY', totals, 'regrouped', 1) end
redis.call('HSETNX', config, 'lease_ms', ARGV[1])
return {tonumber(redis.call('HGET', config, 'lease_ms')), now_ms('')}
