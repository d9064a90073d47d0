-- purge: delete dead jobs for good, and give back the dedupe keys that outlived them.
-- Moves: dead -> gone
-- KEYS: 1 dead, 2 dead ids, 3 totals, 4 metrics base, 5.. dedupe keys
-- ARGV: 1 clock, then per job: dead entry, job, position of its dedupe key in KEYS or 0
-- Returns: per job OK, GONE, or the promise of one that is to begin anew: "<queue> <ms>"
-- Cost: O(jobs); about 4 us each, 500 at most
-- @include now
-- @include counters
-- @include entry
-- @include leave
-- @include promise
local dead, dead_ids = KEYS[1], KEYS[2]
local now = now_ms(ARGV[1])
local count = counters(KEYS[3], KEYS[4], now)

local function purge(entry, job, key)
  local at, promise = row_of(dead_ids, job)
  local fields = read(dead, entry)
  if not fields then return 'GONE' end
  if at ~= entry then
    if fields.id and row_of(dead_ids, fields.id) == entry then return 'GONE' end
    -- To which no job leads, somebody else's: it was never counted, nor is that it goes.
    redis.call('XDEL', dead, entry)
    return 'OK'
  end
  -- One of which nobody can know any more what became of it goes.
  if promise ~= '' and not stale(promise, now) then return promise end
  redis.call('XDEL', dead, entry)
  redis.call('HDEL', dead_ids, job)
  if key then free(key, job) end
  count('purged', fields.kind, 1)
  return 'OK'
end

local words = {}
for i = 2, #ARGV, 3 do
  words[#words + 1] = purge(ARGV[i], ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])])
end
return words
