-- tick: put the jobs of a cron's slots on the stream, each slot once, and none before its time.
-- Only for a caller that knows the last slot: whoever comes second is told what became of it. What
-- it decided upon an older state (run this one, pass over those) is void as a whole.
-- Moves: new -> waiting
-- KEYS: 1 stream, 2 cron, 3 cron:holds, 4 totals, 5 metrics base
-- ARGV: 1 clock, 2 name, 3 the last slot as the caller knows it, 4 schedule, 5 slots passed over,
--       6 the last of those or 0, 7 kind, 8 body, then per slot to run: slot, not before this instant
--       (both ms), "1" if it was missed, meta
-- Returns: OK, DUPLICATE (the last slot is another one: look again), PAUSED (the slots were passed
--       over), EARLY (nothing is due yet), or UNKNOWN (plan first); the last slot; ms until the first
--       of these slots that is not due, or 0; then the ids of the jobs
-- Cost: O(slots); about 5 us each, 100 slots or 1 MiB at most
-- @include now
-- @include counters
-- @include cron
local stream, cron, holds = KEYS[1], KEYS[2], KEYS[3]
local name, passed, passed_to, kind, body = ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]

local now = now_ms(ARGV[1])
local at = standing(cron, name)
if not at then return {'UNKNOWN', 0, 0} end
if at.last ~= tonumber(ARGV[3]) then return {'DUPLICATE', at.last, 0} end
-- Nor may a caller whose idea of the time is wrong pass over what is still to come.
if passed_to > now then return {'EARLY', at.last, passed_to - now} end

local paused = string.find(redis.call('HGET', holds, name) or '', '^paused') ~= nil
local before, wait = at.last, 0
local jobs = {}
if passed_to > 0 then at.last, at.skipped = passed_to, at.skipped + passed end
for i = 9, #ARGV, 4 do
  local due = tonumber(ARGV[i + 1])
  if due > now then
    wait = due - now
    break
  end
  if paused then
    at.skipped = at.skipped + 1
  else
    at.job = redis.call('XADD', stream, '*', 'kind', kind, 'body', body, 'meta', ARGV[i + 3])
    at.runs, at.late = at.runs + 1, at.late + tonumber(ARGV[i + 2])
    jobs[#jobs + 1] = at.job
  end
  at.last = tonumber(ARGV[i])
end
if at.last == before then return {'EARLY', before, wait} end

at.schedule = ARGV[4]
keep_standing(cron, name, at)
if #jobs > 0 then counters(KEYS[4], KEYS[5], now)('enqueued', kind, #jobs) end
return {paused and 'PAUSED' or 'OK', at.last, wait, unpack(jobs)}
