-- vacancy(stream, config, released): how many more jobs may wait in a bounded queue, and its maximum as text;
-- any number without one. What an operator set goes before what the code says. Without a group nobody
-- holds anything, and XPENDING is an error.
local function vacancy(stream, config, released)
  local set = redis.call('HMGET', config, 'max_waiting', 'max_waiting:code')
  local most = set[1] or set[2] or ''
  if not tonumber(most) then return math.huge end
  local group = redis.pcall('XPENDING', stream, 'workers')
  local running = (group[1] or 0) - redis.call('SCARD', released)
  for _, held in ipairs(group[4] or {}) do
    if held[1] == 'parked' then running = running - tonumber(held[2]) end
  end
  return most - redis.call('XLEN', stream) + math.max(0, running), most
end
