-- promise: say of dead jobs in which queue they are to begin anew as other jobs. They stay dead until `adopt` has
-- begun them there and `handover` lets them go: so, interrupted at any point and done again, each begins once.
-- Moves: none
-- KEYS: 1 dead, 2 dead ids
-- ARGV: 1 clock, 2 queue, then per job: dead entry, job
-- Returns: per job its promise, "<queue> <ms>", be it this or an earlier one; or GONE (replayed or purged already)
-- Cost: O(jobs); about 4 us each
-- @include now
-- @include promise
local dead, dead_ids = KEYS[1], KEYS[2]
local now = now_ms(ARGV[1])

local words = {}
for i = 3, #ARGV, 2 do
  local entry, job = ARGV[i], ARGV[i + 1]
  local at, promise = row_of(dead_ids, job)
  if at ~= entry or #redis.call('XRANGE', dead, entry, entry) == 0 then
    promise = 'GONE'
  elseif promise == '' then
    promise = ARGV[2] .. string.format(' %d', now)
    redis.call('HSET', dead_ids, job, entry .. ' ' .. promise)
  end
  words[#words + 1] = promise
end
return words
