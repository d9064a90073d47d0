-- plan: say which crons a worker schedules, and tell it where each of them stands.
-- A schedule that is new, or another one than before, begins now: what came before was not promised.
-- Behind a write that needs no memory, as every worker's: a full server must not hide what is there.
-- Moves: none
-- KEYS: 1 stream, 2 cron, 3 cron:holds, 4 cron:code, 5 workers
-- ARGV: 1 clock, 2 consumer, 3 what to note of the worker, 4 its crons as JSON, then per cron: name,
--       schedule
-- Returns: per cron its last slot, and the instant after which slots count, both in ms
-- Cost: O(crons + workers); about 5 us each
-- @include now
-- @include cron
local stream, cron, holds, code, workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local consumer, note, crons = ARGV[2], ARGV[3], ARGV[4]

redis.call('XACK', stream, 'workers', '0-1')
local now = now_ms(ARGV[1])
redis.call('HSET', workers, consumer, string.format('%d ', now) .. note)
redis.call('HSET', code, consumer, crons)
for _, worker in ipairs(redis.call('HKEYS', code)) do
  if redis.call('HEXISTS', workers, worker) == 0 then redis.call('HDEL', code, worker) end
end

local reply = {}
for i = 5, #ARGV, 2 do
  local name, schedule = ARGV[i], ARGV[i + 1]
  local at = standing(cron, name) or {last = 0, runs = 0, late = 0, skipped = 0, job = '-'}
  -- One that begins in the future was planned while the clock was wrong.
  if at.schedule ~= schedule or at.since > now then
    at.since, at.schedule = now, schedule
    keep_standing(cron, name, at)
  end
  local resumed = tonumber(string.match(redis.call('HGET', holds, name) or '', '^resumed (%d+)$') or 0)
  reply[#reply + 1] = at.last
  reply[#reply + 1] = math.max(at.last, at.since, math.min(resumed, now))
end
return reply
