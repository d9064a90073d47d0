-- order: tell a worker what it is to do; it hears that when it reports. A later order takes the place of
-- an earlier one. Behind a write that needs no memory: workers are to hear also where memory is full.
-- Moves: none
-- KEYS: 1 worker
-- ARGV: 1 the order: a word, and a token that tells it from the one before, 2 ms for which it is kept
-- Returns: 1, or 0 where there is no such worker
-- Cost: O(1); about 2 us
local worker, order, ttl = KEYS[1], ARGV[1], ARGV[2]

if redis.call('PEXPIRE', worker, ttl) == 0 then return 0 end
redis.call('HSET', worker, 'order', order)
return 1
