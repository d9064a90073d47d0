-- start: hear of claims whose handlers are about to begin, where the dedupe mode of their jobs asks for
-- it. A key that is held until its job has started is given back; a job that takes newer arguments gets
-- them, and those that come from here on are for what follows. Again after a lost reply: the same.
-- Moves: none
-- KEYS: 1 stream, 2 latest, 3.. dedupe keys to give back
-- ARGV: 1 consumer, then per entry: id, deliveries, job, position of its dedupe key in KEYS, or 0 to take
--       newer arguments
-- Returns: per entry LOST (this consumer does not hold it), or how many starts took newer arguments, and
--       the body of those that it has now; "" for what the entry has
-- Cost: O(entries); about 5 us each, 100 at most
-- @include fence
-- @include latest
-- @include leave
local stream, latest, consumer = KEYS[1], KEYS[2], ARGV[1]

redis.call('XACK', stream, 'workers', '0-1')

local function take(job)
  local n = of_latest(latest, job)
  local _, newest = of_latest(latest, job .. '+')
  if n and newest then
    redis.call('HSET', latest, job, string.format('%d ', n + 1) .. newest)
    redis.call('HDEL', latest, job .. '+')
  end
  return arguments(latest, job)
end

local rows = {}
for i = 2, #ARGV, 4 do
  local job, key = ARGV[i + 2], KEYS[tonumber(ARGV[i + 3])]
  local row = {'LOST'}
  if held(stream, ARGV[i], consumer, ARGV[i + 1]) then
    local n, body = 0, nil
    if key then free(key, job) else n, body = take(job) end
    row = {n, body or ''}
  end
  rows[#rows + 1] = row
end
return rows
