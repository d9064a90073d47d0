-- delete: forget a queue that holds no job, with all its keys that have a name: streams, sets, configuration, counts.
-- Not within a second of the last id that it gave: a queue made anew at once could give that again. Keys of
-- single jobs that outlive those (windows of dedupe keys, effects, results) end by their own TTL.
-- Moves: none
-- KEYS: 1 stream, 2 ids, 3 scheduled, 4 retries, 5 dead ids, 6 workers, 7.. all others
-- ARGV: 1 clock, 2 "1" to do it though workers serve the queue (they make it anew), else "0",
--       3 ms after which a worker that was not seen counts as gone
-- Returns: OK and 0; or why it was not done: JOBS and how many there are, WORKERS and how many, EARLY
--       and the ms to wait
-- Cost: O(workers); the memory is freed behind the scenes
-- @include now
-- @include last
local stream, ids, scheduled, retries, dead_ids, workers = unpack(KEYS, 1, 6)
local now = now_ms(ARGV[1])

local jobs = redis.call('XLEN', stream) + redis.call('ZCARD', scheduled) + redis.call('ZCARD', retries)
jobs = jobs + redis.call('HLEN', dead_ids)
if jobs > 0 then return {'JOBS', jobs} end

local live, notes = 0, redis.call('HGETALL', workers)
for i = 2, #notes, 2 do
  local seen = tonumber(string.match(notes[i], '^%d+') or '0')
  if now - seen <= tonumber(ARGV[3]) then live = live + 1 end
end
if live > 0 and ARGV[2] ~= '1' then return {'WORKERS', live} end

local wait = math.max((last_given(stream) or 0), (last_given(ids) or 0)) + 1000 - now
if wait > 0 then return {'EARLY', wait} end
redis.call('UNLINK', unpack(KEYS))
return {'OK', 0}
