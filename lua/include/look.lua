-- look_at_lanes(lanes): look at the lanes that are due, and at a few things at random: so whatever was lost
-- or left behind is found in the end, without a scan. Needs entry, bell, lanes, line.
local function look_at_lanes(lanes)
  local function due(zset) return redis.call('ZRANGEBYSCORE', zset, '-inf', lanes.now, 'LIMIT', 0, 20) end

  local freed = due(lanes.gone)
  for _, slot in ipairs(redis.call('ZRANDMEMBER', lanes.slots, 5)) do freed[#freed + 1] = slot end
  for _, slot in ipairs(freed) do
    local lane = tidy(lanes, slot)
    if lane then serve(lanes, lane) end
  end
  for _, lane in ipairs(due(lanes.wake)) do
    local range = {'[' .. lane .. '\n', '(' .. lane .. '\v', 'LIMIT', 0, 200}
    for _, slot in ipairs(redis.call('ZRANGEBYLEX', lanes.slots, unpack(range))) do tidy(lanes, slot) end
    refill(lanes, lane)
    set_wake(lanes, lane)
  end
  for _, waiting in ipairs(redis.call('ZRANDMEMBER', lanes.line, 5)) do
    local lane, entry = string.match(waiting, '^(.*)\n[^\n]+\n([^\n]+)$')
    local row = lane and pending(lanes.stream, entry)
    if not row or row[2] ~= 'parked' then
      -- Cancelled, or claimed away. Where no place comes free nobody else finds that out, and it would hide
      -- from `reclaim` that another was lost from the line.
      redis.call('ZREM', lanes.line, waiting)
    elseif not redis.call('ZSCORE', lanes.wake, lane) then
      set_wake(lanes, lane)
    end
  end
  -- A time that has passed is the same as none.
  local past = redis.call('ZRANGEBYSCORE', lanes.tats, '-inf', string.format('%d', lanes.us), 'LIMIT', 0, 200)
  if #past > 0 then redis.call('ZREM', lanes.tats, unpack(past)) end
end
