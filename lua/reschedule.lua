-- reschedule: give scheduled jobs another time, be they delayed, snoozed or waiting for a retry.
-- Moves: scheduled -> scheduled
-- KEYS: 1 stream, 2 scheduled, 3 retries, 4 bodies, 5 bell, 6 totals, 7 metrics base, 8.. dedupe keys
-- ARGV: 1 clock, then per job: job, delay ms, instant ms or 0 (wins over the delay), position of its
--       dedupe key in KEYS or 0
-- Returns: per job OK, or GONE where it is not scheduled
-- Cost: O(jobs log scheduled); about 6 us each
-- @include now
-- @include counters
-- @include envelope
-- @include bell
-- @include ttl
local stream, scheduled, retries, bodies, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

redis.call('XACK', stream, 'workers', '0-1')
local now = now_ms(ARGV[1])
local count = counters(KEYS[6], KEYS[7], now)
local head = next_due(scheduled, retries)

local function reschedule(job, delay, instant, key)
  local zset = redis.call('ZSCORE', scheduled, job) and scheduled or redis.call('ZSCORE', retries, job) and retries
  local envelope = zset and redis.call('HGET', bodies, job)
  if not envelope then return 'GONE' end
  local due = math.max(now, instant > 0 and instant or now + delay)
  redis.call('ZADD', zset, string.format('%d', due), job)
  if key and redis.call('GET', key) == job then
    redis.call('PEXPIRE', key, string.format('%d', due - now + KEY_TTL))
  end
  count('rescheduled', (unpack_envelope(envelope)), 1)
  return 'OK'
end

local words = {}
for i = 2, #ARGV, 4 do
  local key = KEYS[tonumber(ARGV[i + 3])]
  words[#words + 1] = reschedule(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), key)
end
local due = next_due(scheduled, retries)
if due and due < head then ring(bell) end
return words
