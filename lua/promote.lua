-- promote: move jobs whose time has come from both sets to the stream; let go on who waits in a lane that
-- has room by now; say when the next is due.
-- Safe with any number of callers: the promoter key only saves work.
-- Moves: scheduled -> waiting
-- KEYS: 1 stream, 2 scheduled, 3 retries, 4 bodies, 5 moved, 6 promoter, 7 workers, 8 totals, 9 line,
--       10 slots, 11 wake, 12 gone, 13 tats, 14 limits, 15 config, 16 released, 17 bell
-- ARGV: 1 clock, 2 consumer, 3 jobs at most, 4 "1" if the bell was heard, 5 what to note of the worker
-- Returns: jobs moved, ms until the next is due (0: some are, -1: none), 1 if this caller is the
--       promoter, the server's time in ms, how many may go on: they lie with what was given back
-- Cost: O(jobs moved); about 6 us each, 200 jobs or 1 MiB at most; 20 lanes and 200 of those who wait
-- @include now
-- @include envelope
-- @include bell
-- @include entry
-- @include lanes
-- @include line
-- @include look
local stream, scheduled, retries, bodies, moved = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local promoter, workers, totals = KEYS[6], KEYS[7], KEYS[8]
local consumer, limit, rung, note = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

redis.call('XACK', stream, 'workers', '0-1')
local us = now_us(ARGV[1])
local now = math.floor(us / 1000)
local count, half = 0, math.ceil(limit / 2)

-- Half of the jobs and of the bytes for each set, so that a flood in one cannot starve the other.
local function promote(zset)
  local bytes = 0
  local due = redis.call('ZRANGEBYSCORE', zset, '-inf', string.format('%d', now), 'LIMIT', 0, half)
  for _, job in ipairs(due) do
    if bytes >= 524288 then return end
    local envelope = redis.call('HGET', bodies, job)
    if envelope then
      local kind, body, meta = unpack_envelope(envelope)
      local entry = redis.call('XADD', stream, '*', 'kind', kind, 'body', body, 'meta', meta)
      redis.call('HSET', moved, job, entry)
      bytes = bytes + #envelope
      count = count + 1
    else
      redis.call('HINCRBY', totals, 'vanished', 1)
    end
    redis.call('ZREM', zset, job)
    redis.call('HDEL', bodies, job)
  end
end

promote(retries)
promote(scheduled)
if count > 0 then redis.call('HINCRBY', totals, 'promoted', count) end

local woken = 0
if redis.call('EXISTS', unpack(KEYS, 9, 13)) > 0 then
  local lanes = open_lanes(9, us)
  look_at_lanes(lanes)
  woken = lanes.woken
  if woken > 0 then ring(lanes.bell) end
end

local due = next_due(scheduled, retries, KEYS[11], KEYS[12])
local wait = due and math.max(due - now, 0) or -1
local holder = redis.call('GET', promoter)
local leads = not holder or holder == consumer or rung == '1'
if leads then
  local sleep = wait >= 0 and math.min(wait, 5000) or 5000
  redis.call('SET', promoter, consumer, 'PX', string.format('%d', sleep + 2000))
end
redis.call('HSET', workers, consumer, string.format('%d ', now) .. note)
return {count, wait, leads and 1 or 0, now, woken}
