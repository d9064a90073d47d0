-- vacancy(stream, config): how many more jobs may wait in a bounded queue, and its maximum as text; any
-- number without one. What an operator set goes before what the code says. Without a group nobody holds
-- anything, and XPENDING is an error. What was given back is counted by who has it: the set `released`
-- still names some after the loss of the group.
local function vacancy(stream, config)
  local set = redis.call('HMGET', config, 'max_waiting', 'max_waiting:code')
  local most = set[1] or set[2] or ''
  if not tonumber(most) then return math.huge end
  local group = redis.pcall('XPENDING', stream, 'workers')
  local running = group[1] or 0
  for _, held in ipairs(group[4] or {}) do
    if held[1] == 'parked' or held[1] == 'released' then running = running - tonumber(held[2]) end
  end
  return most - redis.call('XLEN', stream) + running, most
end
