-- record: keep that an effect has happened, and its value. The first record stays: a run that did it
-- again changes nothing of what others were told.
-- Moves: none
-- KEYS: 1 stream, 2 once key
-- ARGV: 1 clock, 2 job, 3 ms that it is kept, 4 the value (JSON)
-- Returns: OK, or DONE where it was recorded before
-- Cost: O(1); about 3 us
-- @include now
local stream, key, job, value = KEYS[1], KEYS[2], ARGV[2], ARGV[4]

redis.call('XACK', stream, 'workers', '0-1')
if string.sub(redis.call('GET', key) or '', 1, 5) == 'done ' then return 'DONE' end
redis.call('SET', key, string.format('done %d %s ', now_ms(ARGV[1]), job) .. value, 'PX', ARGV[3])
return 'OK'
