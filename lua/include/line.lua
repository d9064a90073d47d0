-- Those who wait in lanes, and how they go on. Needs entry, bell, lanes.
local LOOK_MS = 25

-- refill(lanes, lane): give free places to the first of the line. They go over to "released" with the place
-- kept for them, so that order holds: whoever takes them starts them. What is gone from the stream
-- meanwhile, or was claimed away, is dropped from the line.
local function refill(lanes, lane)
  local free = room(lanes, lane)
  while free >= 1 and lanes.left > 0 do
    local first = first_in(lanes.line, lane)
    if not first then return end
    local entry = string.match(first, '([^\n]+)$')
    local row = pending(lanes.stream, entry)
    if row and row[2] == 'parked' then
      if not own_slot(lanes, lane, entry) then
        redis.call('ZADD', lanes.slots, 0, lane .. '\n' .. entry .. '/0')
        free = free - 1
      end
      redis.call('SADD', lanes.released, entry)
      redis.call('XCLAIM', lanes.stream, 'workers', 'released', 0, entry, 'IDLE', lanes.lease, 'JUSTID')
      lanes.woken = lanes.woken + 1
    end
    redis.call('ZREM', lanes.line, first)
    lanes.left = lanes.left - 1
  end
end

-- set_wake(lanes, lane): say when a lane is to be looked at. With free places at once; a rate when its next
-- token comes; else after a lease: by then a place whose holder died is seen to be free. Never if nobody waits.
local function set_wake(lanes, lane)
  if not first_in(lanes.line, lane) then return redis.call('ZREM', lanes.wake, lane) end
  local at, limit = lanes.now + lanes.lease, limit_of(lanes, lane)
  if room(lanes, lane) >= 1 then
    at = lanes.now
  elseif limit[2] then
    local next_us = tonumber(redis.call('ZSCORE', lanes.tats, lane) or '0') - (limit[1] - 1) * limit[2]
    at = math.max(lanes.now + LOOK_MS, math.ceil(next_us / 1000))
  end
  redis.call('ZADD', lanes.wake, string.format('%d', at), lane)
end

-- serve(lanes, lane): after something has changed in a lane, let go who can, and see that it is looked at later.
local function serve(lanes, lane)
  if not first_in(lanes.line, lane) then return end
  refill(lanes, lane)
  if lanes.left == 0 or not redis.call('ZSCORE', lanes.wake, lane) then set_wake(lanes, lane) end
end

-- tidy(lanes, slot): free a slot whose entry nobody holds any more, and return its lane. One that was taken by a
-- start is kept for a lease from when that was first seen: the worker that lost the entry may still run it.
local function tidy(lanes, slot)
  local lane, entry, deliveries = string.match(slot, '^(.*)\n([^\n/]+)/(%d+)$')
  -- Not ours: an error would stop every later promotion.
  if not lane then return redis.call('ZREM', lanes.slots, slot) and nil end
  if pending(lanes.stream, entry) then
    redis.call('ZREM', lanes.gone, slot)
    return nil
  end
  local free_at = redis.call('ZSCORE', lanes.gone, slot)
  if deliveries ~= '0' and not free_at then
    redis.call('ZADD', lanes.gone, string.format('%d', lanes.now + lanes.lease), slot)
  elseif deliveries == '0' or tonumber(free_at) <= lanes.now then
    redis.call('ZREM', lanes.slots, slot)
    redis.call('ZREM', lanes.gone, slot)
    return lane
  end
end
