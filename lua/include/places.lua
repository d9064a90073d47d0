-- What one entry takes of its lanes, keeps and gives up. Needs lanes.

-- refuses(lanes, lane, id, order): whether the entry has to wait in this lane.
local function refuses(lanes, lane, id, order)
  local limit, own = limit_of(lanes, lane), own_slot(lanes, lane, id)
  if own and limit and limit[2] then return tokens(lanes, lane, limit) < 1 end
  -- Places were kept for more than may run where the limit was lost, or lowered meanwhile.
  if own then return string.sub(own, -2) == '/0' and room(lanes, lane) < 0 end
  return room(lanes, lane) < 1 or first_in(lanes.line, lane, lane .. '\n' .. order .. '\n') ~= nil
end

-- take_place(lanes, lane, id, deliveries): what a start takes: the slot of a concurrency, until it is vacated;
-- a token of a rate, for good.
local function take_place(lanes, lane, id, deliveries)
  local own, limit, slot = own_slot(lanes, lane, id), limit_of(lanes, lane), lane .. '\n' .. id .. '/' .. deliveries
  if string.sub(lane, 1, 1) == 'c' then
    redis.call('ZADD', lanes.slots, 0, slot)
  elseif limit then
    local tat = math.max(lanes.us, tonumber(redis.call('ZSCORE', lanes.tats, lane) or '0'))
    redis.call('ZADD', lanes.tats, string.format('%d', tat + limit[2]), lane)
  end
  if own and own ~= slot then redis.call('ZREM', lanes.slots, own) end
end

-- park(lanes, id, order, from, at, last): let the entry wait in the lane ARGV[at] of its lanes ARGV[from] to
-- ARGV[last]. It keeps slots of the narrower lanes, before it, and gives up whatever else it has.
local function park(lanes, id, order, from, at, last)
  for i = from, last do
    local lane = ARGV[i]
    local own, keeps = own_slot(lanes, lane, id), i < at and string.sub(lane, 1, 1) == 'c'
    if keeps and not own then
      redis.call('ZADD', lanes.slots, 0, lane .. '\n' .. id .. '/0')
    elseif own and not keeps then
      redis.call('ZREM', lanes.slots, own)
      lanes.touched[lane] = true
    end
  end
  redis.call('ZADD', lanes.line, 0, ARGV[at] .. '\n' .. order .. '\n' .. id)
  redis.call('XCLAIM', lanes.stream, 'workers', 'parked', 0, id, 'JUSTID')
  lanes.touched[ARGV[at]] = true
end
