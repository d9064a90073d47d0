-- restore: put exported dead jobs back among the dead, unless they are there in any form: dead or alive.
-- Moves: new -> dead
-- KEYS: 1 stream, 2 moved, 3 bodies, 4 dead, 5 dead ids, 6 totals, 7 metrics base
-- ARGV: 1 clock, then per job: job, kind, how many words its row has, field and value of each
-- Returns: per job OK, DEAD or LIVE (left alone)
-- Cost: O(jobs); about 10 us each, 500 or 1 MiB at most
-- @include now
-- @include counters
-- @include entry
-- @include promise
local stream, moved, bodies, dead, dead_ids = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local count = counters(KEYS[6], KEYS[7], now_ms(ARGV[1]))

local function restore(job, kind, first, last)
  local entry = row_of(dead_ids, job)
  if entry and read(dead, entry) then return 'DEAD' end
  if locate(stream, moved, job) or redis.call('HEXISTS', bodies, job) == 1 then return 'LIVE' end
  redis.call('HSET', dead_ids, job, redis.call('XADD', dead, '*', unpack(ARGV, first, last)))
  count('restored', kind, 1)
  return 'OK'
end

local words, i = {}, 2
while ARGV[i] do
  local last = i + 2 + tonumber(ARGV[i + 2])
  words[#words + 1] = restore(ARGV[i], ARGV[i + 1], i + 3, last)
  i = last + 1
end
return words
