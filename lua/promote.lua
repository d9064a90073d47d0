-- promote: move jobs whose time has come from both sets to the stream; let go on who waits in a lane that
-- has room by now; say when the next is due.
-- Safe with any number of callers: the promoter key only saves work. Fresh jobs go behind what is
-- promoted: so a flood of due jobs is let in only as the stream is worked off.
-- Moves: scheduled -> waiting
-- KEYS: 1 stream, 2 scheduled, 3 retries, 4 bodies, 5 moved, 6 promoter, 7 workers, 8 totals,
--       9 base of dedupe keys: only the metas of the jobs that move name them; 10 line, 11 slots,
--       12 wake, 13 gone, 14 tats, 15 limits, 16 config, 17 released, 18 bell, 19 metrics base
-- ARGV: 1 clock, 2 consumer, 3 jobs at most, 4 "1" if the bell was heard, 5 what to note of the worker,
--       6 jobs that may wait in the stream
-- Returns: jobs moved, ms until the next is due (0: some are, -1: none), 1 if this caller is the
--       promoter, the server's time in ms, how many may go on: they lie with what was given back.
--       Some are due and none was moved: there was no room
-- Cost: O(jobs moved); about 6 us each, 200 jobs or 1 MiB at most; 20 lanes and 200 of those who wait
-- @include now
-- @include envelope
-- @include bell
-- @include counters
-- @include due
-- @include entry
-- @include lanes
-- @include line
-- @include look
local stream, scheduled, retries, bodies, moved = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local promoter, workers, totals, dedupe = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local consumer, limit, rung, note = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

redis.call('XACK', stream, 'workers', '0-1')
local us = now_us(ARGV[1])
local now, moved_jobs = math.floor(us / 1000), 0

local due = next_due(scheduled, retries)
local most = due and due <= now and due_room(stream, moved, limit, tonumber(ARGV[6])) or 0
if most > 0 then
  local let_in, moved_kinds = opener(now, stream, bodies, moved, totals, dedupe)
  -- Half of the jobs for retries, and what they leave, or one at least, for the others.
  moved_jobs = let_in(retries, math.ceil(most / 2))
  moved_jobs = moved_jobs + let_in(scheduled, math.max(1, most - moved_jobs))
  local count = counters(totals, KEYS[19], now)
  for kind, n in pairs(moved_kinds) do count('promoted', kind, n) end
end

local woken = 0
if redis.call('EXISTS', unpack(KEYS, 10, 14)) > 0 then
  local lanes = open_lanes(10, us)
  look_at_lanes(lanes)
  woken = lanes.woken
  if woken > 0 then ring(lanes.bell) end
end

due = next_due(scheduled, retries, KEYS[12], KEYS[13])
local wait = due and math.max(due - now, 0) or -1
local holder = redis.call('GET', promoter)
local leads = not holder or holder == consumer or rung == '1'
if leads then
  local sleep = wait >= 0 and math.min(wait, 5000) or 5000
  redis.call('SET', promoter, consumer, 'PX', string.format('%d', sleep + 2000))
end
redis.call('HSET', workers, consumer, string.format('%d ', now) .. note)
return {moved_jobs, wait, leads and 1 or 0, now, woken}
