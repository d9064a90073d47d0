-- due_room(stream, moved, limit, ahead): how many due jobs may go in: up to `ahead` waiting ones, and beyond that
-- up to as many as are there by other ways. Without a group nobody holds anything, and XPENDING is an error.
local function due_room(stream, moved, limit, ahead)
  local length = redis.call('XLEN', stream)
  local waiting = length - (redis.pcall('XPENDING', stream, 'workers')[1] or 0)
  local beside = length - 2 * redis.call('HLEN', moved)
  return math.max(0, math.min(limit, math.max(ahead - waiting, beside)))
end
