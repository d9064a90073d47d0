-- ring(bell): wake one worker; at most one ring is ever waiting.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then redis.call('LPUSH', bell, '1') end
end

-- next_due(...): the earliest time of several sets, or nil.
local function next_due(...)
  local earliest
  for _, zset in ipairs({...}) do
    local at = tonumber(redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2])
    if at and (not earliest or at < earliest) then earliest = at end
  end
  return earliest
end
