-- A lane is one limit with one key, as a name: "c:q" or "r:q" (concurrency or rate of the whole queue),
-- "c:k:<kind>", or "c:k:<kind> <argument> <key>". Its base is the name without the key.

-- open_lanes(at, us): what the functions on lanes share. KEYS from `at` on: line, slots, wake, gone, tats,
-- limits, config, released, bell; KEYS[1] is the stream, `us` the time in microseconds.
local function open_lanes(at, us)
  local lanes = {
    us = us, now = math.floor(us / 1000), stream = KEYS[1], line = KEYS[at], slots = KEYS[at + 1],
    wake = KEYS[at + 2], gone = KEYS[at + 3], tats = KEYS[at + 4], limits = KEYS[at + 5],
    config = KEYS[at + 6], released = KEYS[at + 7], bell = KEYS[at + 8], known = {}, touched = {}, woken = 0, left = 200,
  }
  lanes.lease = tonumber(redis.call('HGET', lanes.config, 'lease_ms') or '15000')
  return lanes
end

-- limit_of(lanes, lane): {places} of a concurrency, {burst, us from token to token} of a rate, or false for
-- none. What an operator set goes before what the workers' code says.
local function limit_of(lanes, lane)
  local base = string.match(lane, '^(%S+ %S+) ') or lane
  if lanes.known[base] == nil then
    local text = redis.call('HGET', lanes.config, 'limit:' .. base) or redis.call('HGET', lanes.limits, base)
    local places, interval = string.match(text or '', '^(%d+) ?(%d*)$')
    lanes.known[base] = places and {tonumber(places), tonumber(interval)} or false
  end
  return lanes.known[base]
end

-- first_in(zset, lane, before): the first member of a lane in the line or in the slots, or nil.
local function first_in(zset, lane, before)
  return redis.call('ZRANGEBYLEX', zset, '[' .. lane .. '\n', '(' .. (before or lane .. '\v'), 'LIMIT', 0, 1)[1]
end

-- own_slot(lanes, lane, entry): what the entry has of a lane: kept for it ("/0"), or taken by a start.
local function own_slot(lanes, lane, entry)
  local slot = lane .. '\n' .. entry
  return redis.call('ZRANGEBYLEX', lanes.slots, '[' .. slot .. '/', '(' .. slot .. '0', 'LIMIT', 0, 1)[1]
end

-- tokens(lanes, lane, limit): how many starts a rate allows now, by its theoretical arrival time. What a slower
-- limit than this one left further ahead than this one can (or a clock that was set back) is cut.
local function tokens(lanes, lane, limit)
  local ahead = tonumber(redis.call('ZSCORE', lanes.tats, lane) or '0') - lanes.us
  if ahead <= 0 then return limit[1] end
  if ahead > limit[1] * limit[2] then
    ahead = limit[1] * limit[2]
    redis.call('ZADD', lanes.tats, string.format('%d', lanes.us + ahead), lane)
  end
  return math.floor((limit[1] * limit[2] - ahead) / limit[2])
end

-- room(lanes, lane): how many more may have a place; what is kept for those on their way counts as taken.
local function room(lanes, lane)
  local limit = limit_of(lanes, lane)
  if not limit then return math.huge end
  local places = limit[2] and tokens(lanes, lane, limit) or limit[1]
  return places - redis.call('ZLEXCOUNT', lanes.slots, '[' .. lane .. '\n', '(' .. lane .. '\v')
end
