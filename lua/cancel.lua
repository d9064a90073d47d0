-- cancel: end jobs as cancelled, wherever they are; a worker that runs one learns it when it renews.
-- Newer arguments go with a job that an operator cancels, and follow one that its handler cancels.
-- Moves: scheduled -> cancelled, waiting -> cancelled, running -> cancelled, new -> waiting,
--       new -> scheduled
-- KEYS: 1 stream, 2 moved, 3 scheduled, 4 retries, 5 bodies, 6 dead ids, 7 released, 8 suspects,
--       9 totals, 10 metrics base, 11 latest, 12 ids, 13 bell, 14.. dedupe and result keys
-- ARGV: 1 clock, 2 consumer ("" for an operator, who needs no fence; "-" for one who spares what runs),
--       3 channel for results, then per job: job, entry and deliveries (the fence; "" and 0 for an
--       operator), position of its dedupe key in KEYS or 0, position of its result key or 0, ms to keep
--       how it ended, how it ended
-- Returns: per job a word: WAITING, RUNNING, SCHEDULED (what it was); DEAD or BUSY (it is dead, or runs,
--       and was left so); LOST; GONE
-- Cost: O(jobs); about 10 us each
-- @include now
-- @include counters
-- @include fence
-- @include entry
-- @include envelope
-- @include leave
-- @include follow
local stream, moved, scheduled, retries, bodies = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead_ids, released, suspects = KEYS[6], KEYS[7], KEYS[8]
local consumer, channel = ARGV[2], ARGV[3]
local operator, sparing = consumer == '' or consumer == '-', consumer == '-'

redis.call('XACK', stream, 'workers', '0-1')
local now, latest = now_ms(ARGV[1]), KEYS[11]
local count = counters(KEYS[9], KEYS[10], now)
local follow = follower(stream, now, count, latest, KEYS[12], scheduled, bodies, KEYS[13])

local function from_stream(job, id, kind)
  local held_by_worker = runs(pending(stream, id))
  if held_by_worker and sparing then return 'BUSY' end
  leave(stream, id, moved, job, suspects)
  redis.call('SREM', released, id)
  return held_by_worker and 'RUNNING' or 'WAITING', kind
end

-- Returns the word, and the kind when the job was cancelled.
local function cancel(job, entry, deliveries)
  if not operator and not held(stream, entry, consumer, deliveries) then return 'LOST' end
  local id, fields = locate(stream, moved, job)
  if id then return from_stream(job, id, fields.kind or '') end
  local envelope = redis.call('HGET', bodies, job)
  if envelope then
    redis.call('ZREM', scheduled, job)
    redis.call('ZREM', retries, job)
    redis.call('HDEL', bodies, job)
    return 'SCHEDULED', (unpack_envelope(envelope))
  end
  return redis.call('HEXISTS', dead_ids, job) == 1 and 'DEAD' or 'GONE'
end

local words = {}
for i = 4, #ARGV, 7 do
  local job = ARGV[i]
  local word, kind = cancel(job, ARGV[i + 1], ARGV[i + 2])
  if kind then
    local key, result = KEYS[tonumber(ARGV[i + 3])], KEYS[tonumber(ARGV[i + 4])]
    if result then tell(result, channel, ARGV[i + 5], ARGV[i + 6], job) end
    if key and operator then redis.call('HDEL', latest, job, job .. '+') end
    if key then follow(job, nil, key) end
    count('cancelled', kind, 1)
  end
  words[#words + 1] = word
end
return words
