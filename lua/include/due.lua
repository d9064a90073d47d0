-- due_room(stream, moved, limit, ahead): how many due jobs may go in: up to `ahead` waiting ones, and beyond that
-- up to as many as are there by other ways. Without a group nobody holds anything, and XPENDING is an error.
local function due_room(stream, moved, limit, ahead)
  local length = redis.call('XLEN', stream)
  local waiting = length - (redis.pcall('XPENDING', stream, 'workers')[1] or 0)
  local beside = length - 2 * redis.call('HLEN', moved)
  return math.max(0, math.min(limit, math.max(ahead - waiting, beside)))
end

-- opener(now, stream, bodies, moved, totals, dedupe): a function let_in(zset, most) that moves the first due jobs of
-- a set to the stream and returns how many, and a table of how many of each kind it has moved.
-- @include envelope
-- @include prolong
local function opener(now, stream, bodies, moved, totals, dedupe)
  local kinds = {}

  local function let_in(zset, most)
    local bytes, count = 0, 0
    local due = redis.call('ZRANGEBYSCORE', zset, '-inf', string.format('%d', now), 'LIMIT', 0, most)
    for _, job in ipairs(due) do
      -- Half of the bytes of a call: a flood in one set cannot starve the other.
      if bytes >= 524288 then break end
      local envelope = redis.call('HGET', bodies, job)
      if envelope then
        local kind, body, meta = unpack_envelope(envelope)
        local entry = redis.call('XADD', stream, '*', 'kind', kind, 'body', body, 'meta', meta)
        redis.call('HSET', moved, job, entry)
        prolong(dedupe, job, meta)
        bytes, count = bytes + #envelope, count + 1
        kinds[kind] = (kinds[kind] or 0) + 1
      else
        redis.pcall('HINCRBY', totals, 'vanished', 1)
      end
      redis.call('ZREM', zset, job)
      redis.call('HDEL', bodies, job)
    end
    return count
  end

  return let_in, kinds
end
