-- purge: delete dead jobs for good, and give back the dedupe keys that outlived them.
-- Moves: dead -> gone
-- KEYS: 1 dead, 2 dead ids, 3 totals, 4 metrics base, 5.. dedupe keys
-- ARGV: 1 clock, then per job: dead entry, job, position of its dedupe key in KEYS or 0
-- Returns: per job OK or GONE
-- Cost: O(jobs); about 4 us each, 500 at most
-- @include now
-- @include counters
-- @include entry
-- @include leave
local dead, dead_ids = KEYS[1], KEYS[2]
local count = counters(KEYS[3], KEYS[4], now_ms(ARGV[1]))

local words = {}
for i = 2, #ARGV, 3 do
  local entry, job, key = ARGV[i], ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])]
  local fields = read(dead, entry)
  if fields and redis.call('HGET', dead_ids, job) == entry then
    redis.call('XDEL', dead, entry)
    redis.call('HDEL', dead_ids, job)
    if key then free(key, job) end
    count('purged', fields.kind, 1)
    words[#words + 1] = 'OK'
  else
    words[#words + 1] = 'GONE'
  end
end
return words
