-- retire: forget consumers that hold nothing. XGROUP DELCONSUMER drops whatever a consumer still
-- holds, and what it drops is never delivered again: hence the check, in the same step.
-- Where one of them was the promoter, another worker is woken, if there is one, to take its place.
-- Moves: none
-- KEYS: 1 stream, 2 workers, 3 promoter, 4 bell
-- ARGV: consumers
-- Returns: how many were forgotten
-- Cost: O(consumers); about 3 us each, 500 at most
-- @include bell
local stream, workers, promoter, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

redis.call('XACK', stream, 'workers', '0-1')
local forgotten, led = 0, nil
for _, consumer in ipairs(ARGV) do
  if redis.call('GET', promoter) == consumer then led = redis.call('DEL', promoter) end
  if #redis.call('XPENDING', stream, 'workers', '-', '+', 1, consumer) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', stream, 'workers', consumer)
    redis.call('HDEL', workers, consumer)
    forgotten = forgotten + 1
  end
end
if led and redis.call('EXISTS', workers) == 1 then ring(bell) end
return forgotten
