-- handover: end the promises of dead jobs: let those go that have begun anew as other jobs, and keep those
-- that could not.
-- Moves: dead -> gone
-- KEYS: 1 dead, 2 dead ids, 3 totals, 4 metrics base, then per job the key that says what it became; dedupe keys
-- ARGV: 1 clock, then per job: dead entry, job, its promise, position of the key that says what it became, what
--       it became ("" for nothing), position of its dedupe key in KEYS or 0
-- Returns: per job OK, or GONE (ended already)
-- Cost: O(jobs); about 8 us each
-- @include now
-- @include counters
-- @include entry
-- @include leave
-- @include promise
local dead, dead_ids = KEYS[1], KEYS[2]
local count = counters(KEYS[3], KEYS[4], now_ms(ARGV[1]))
local BECAME_TTL = 604800000

-- After a write the server refuses nothing for memory.
redis.call('XDEL', dead, '0-1')

local function finish(entry, job, promise, became_key, became, key)
  local at, given = row_of(dead_ids, job)
  if at ~= entry or given ~= promise then return 'GONE' end
  if became == '' then
    redis.call('HSET', dead_ids, job, entry)
    return 'OK'
  end
  local fields = read(dead, entry)
  redis.call('SET', became_key, became, 'PX', BECAME_TTL)
  redis.call('XDEL', dead, entry)
  redis.call('HDEL', dead_ids, job)
  if key then free(key, job) end
  count('handed', fields and fields.kind, 1)
  return 'OK'
end

local words = {}
for i = 2, #ARGV, 6 do
  local became_key, key = KEYS[tonumber(ARGV[i + 3])], KEYS[tonumber(ARGV[i + 5])]
  words[#words + 1] = finish(ARGV[i], ARGV[i + 1], ARGV[i + 2], became_key, ARGV[i + 4], key)
end
return words
