-- adopt: begin promised jobs anew, as jobs of this queue. What becomes of a promise is decided by the first who
-- asks, and kept: whoever asks again, after a lost reply or beside another, is told the same.
-- Moves: new -> waiting
-- KEYS: 1 stream, 2 latest, 3 totals, 4 metrics base, then per job the key of its promise; dedupe keys
-- ARGV: 1 clock, then per job: position of its promise's key in KEYS, the promise, kind, body, meta, position of its
--       dedupe key in KEYS or 0, ms that the key lives, a job that may hold it ("": none), how many
--       starts had taken newer arguments, or "" for a job that takes none
-- Returns: per job its new id; "!" and the id of the job that holds its dedupe key; or UNSURE: too long ago
-- Cost: O(jobs); about 12 us each, 500 or 1 MiB at most
-- @include now
-- @include counters
-- @include promise
-- @include latest
local stream, latest = KEYS[1], KEYS[2]
local now = now_ms(ARGV[1])
local count = counters(KEYS[3], KEYS[4], now)

local function begin(kind, body, meta, key, ttl, former, newer)
  local holder = key and redis.call('GET', key)
  if holder and holder ~= former then return '!' .. holder end
  local job = redis.call('XADD', stream, '*', 'kind', kind, 'body', body, 'meta', meta)
  if key then redis.call('SET', key, job, 'PX', ttl) end
  if newer ~= '' then expect(latest, job, kind, newer) end
  count('enqueued', kind, 1)
  return job
end

local words = {}
for i = 2, #ARGV, 9 do
  local promised, promise = KEYS[tonumber(ARGV[i])], ARGV[i + 1]
  local word = redis.call('GET', promised)
  if not word and stale(promise, now) then
    word = 'UNSURE'
  elseif not word then
    word = begin(ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], KEYS[tonumber(ARGV[i + 5])], unpack(ARGV, i + 6, i + 8))
    redis.call('SET', promised, word, 'PX', PROMISE_TTL)
  end
  words[#words + 1] = word
end
return words
