-- ring(bell): wake one worker; at most one ring is ever waiting.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then redis.call('LPUSH', bell, '1') end
end

-- next_due(scheduled, retries): the earliest run_after of both sets, or nil.
local function next_due(scheduled, retries)
  local first = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
  local second = redis.call('ZRANGE', retries, 0, 0, 'WITHSCORES')[2]
  if first and second then return math.min(tonumber(first), tonumber(second)) end
  return tonumber(first or second)
end
