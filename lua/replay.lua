-- replay: put dead jobs back on the stream, with fresh attempts and the id they had.
-- Moves: dead -> waiting
-- KEYS: 1 stream, 2 dead, 3 dead ids, 4 moved, 5 totals, 6 metrics base, 7 latest, 8.. dedupe keys
-- ARGV: 1 clock, then per job: dead entry, job, meta, "=" to keep its body or "!" and a new body,
--       position of its dedupe key in KEYS or 0, ms that the key lives, how many starts had taken newer
--       arguments, or "" for a job that takes none
-- Returns: per job OK, GONE (replayed or purged already), the id of the job that holds its key, or the promise
--       of one that is to begin anew: "<queue> <ms>"
-- Cost: O(jobs); about 10 us each, 500 or 1 MiB at most
-- @include now
-- @include counters
-- @include entry
-- @include latest
-- @include promise
local stream, dead, dead_ids, moved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local count = counters(KEYS[5], KEYS[6], now_ms(ARGV[1]))

local function replay(entry, job, meta, body, key, ttl, newer)
  local at, promise = row_of(dead_ids, job)
  local fields = at == entry and read(dead, entry)
  if not fields then return 'GONE' end
  if promise ~= '' then return promise end
  local holder = key and redis.call('GET', key)
  -- A window outlives its job's death: the key may be this job's own still.
  if holder and holder ~= job then return holder end
  if string.sub(body, 1, 1) == '!' then fields.body = string.sub(body, 2) end
  local id = redis.call('XADD', stream, '*', 'kind', fields.kind, 'body', fields.body, 'meta', meta)
  redis.call('HSET', moved, job, id)
  if key then redis.call('SET', key, job, 'PX', ttl) end
  if newer ~= '' then expect(KEYS[7], job, fields.kind, newer) end
  redis.call('XDEL', dead, entry)
  redis.call('HDEL', dead_ids, job)
  count('replayed', fields.kind, 1)
  return 'OK'
end

local words = {}
for i = 2, #ARGV, 7 do
  local key = KEYS[tonumber(ARGV[i + 4])]
  words[#words + 1] = replay(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], key, ARGV[i + 5], ARGV[i + 6])
end
return words
