-- held(stream, id, consumer, deliveries): whether this consumer still holds the entry at this
-- delivery count. A former holder, and an earlier claim of the same holder, fail it.
local function held(stream, id, consumer, deliveries)
  local row = redis.call('XPENDING', stream, 'workers', id, id, 1)[1]
  return row and row[2] == consumer and row[4] == tonumber(deliveries)
end
