-- limit: set or lift a limit at run time, and let its lanes be looked at now. What is set here goes before what
-- the workers' code says. Lanes are walked in steps, for a limit per key may have any number of them.
-- Moves: none
-- KEYS: 1 stream, 2 line, 3 wake, 4 config, 5 bell
-- ARGV: 1 base of the lanes, 2 "set" with 3 the value ("off" for no limit), or "reset" to what the code
--       says, 4 where the walk stands ("" at its begin: only then something is set)
-- Returns: where the next step goes on; "" when it is through
-- Cost: O(lanes passed); about 2 us each, 500 at most
-- @include now
-- @include bell
local line, wake, config, bell = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local base, deed, value, from = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

redis.call('XACK', KEYS[1], 'workers', '0-1')
local now = string.format('%d', now_ms(''))
if from == '' then
  if deed == 'set' then
    redis.call('HSET', config, 'limit:' .. base, value)
  else
    redis.call('HDEL', config, 'limit:' .. base)
  end
  -- Workers that see another number here read the limits anew.
  redis.call('HINCRBY', config, 'limited', 1)
  from = '[' .. base
end
-- Behind a base with an argument comes a space and the key, behind any lane a line feed.
local stop = '(' .. base .. (string.find(base, ' ', 1, true) and '!' or '\v')
for _ = 1, 500 do
  local first = redis.call('ZRANGEBYLEX', line, from, stop, 'LIMIT', 0, 1)[1]
  local lane = first and string.match(first, '^(.*)\n[^\n]+\n[^\n]+$')
  if not lane then
    from = ''
    break
  end
  redis.call('ZADD', wake, now, lane)
  from = '[' .. lane .. '\v'
end
ring(bell)
return from
