-- report: a worker tells of itself, and hears what an operator has ordered.
-- Behind a write that needs no memory: who works must be seen, and hear, where memory is full.
-- Moves: none
-- KEYS: 1 worker
-- ARGV: 1 what it tells, as JSON, 2 ms for which that is kept
-- Returns: the last order, or ""
-- Cost: O(1); about 4 us
local worker, note, ttl = KEYS[1], ARGV[1], ARGV[2]

redis.call('PEXPIRE', worker, ttl)
redis.call('HSET', worker, 'note', note)
redis.call('PEXPIRE', worker, ttl)
return redis.call('HGET', worker, 'order') or ''
