-- follower(stream, now, count, latest, ids, scheduled, bodies, bell): a function follow(job, ran, key)
-- that gives the key of an ended job back, or on to a job with the newest arguments, which it adds: where
-- some came since the last start, or where the success that ended it had older ones than a later start
-- took (`ran` counts as in latest.lua; nil for who held the claim, and so was the last to start it).
-- @include latest
-- @include bell
-- @include leave
-- @include ttl
local function follower(stream, now, count, latest, ids, scheduled, bodies, bell)
  local function add(due, kind, body, meta)
    if due <= now then
      return redis.call('XADD', stream, '*', 'kind', kind, 'body', body, 'meta', meta)
    end
    local job = 'd' .. redis.call('XADD', ids, 'MAXLEN', 0, '*', 'x', '')
    redis.call('HSET', bodies, job, pack(kind, body, with_id(meta, job)))
    redis.call('ZADD', scheduled, string.format('%d', due), job)
    count('delayed', kind, 1, false)
    ring(bell)
    return job
  end

  return function(job, ran, key)
    local n, own = of_latest(latest, job)
    if not n then return free(key, job) end
    local due, newest = of_latest(latest, job .. '+')
    if not due and ran and ran < n then due, newest = 0, own end
    local holder = redis.call('GET', key)
    if due then
      local kind, body, meta = unpack_envelope(newest)
      local next_job = add(due, kind, body, meta)
      expect(latest, next_job, kind, '0')
      count('enqueued', kind, 1)
      -- A key that lapsed, and has another holder by now, stays that one's.
      if not holder or holder == job then
        redis.call('SET', key, next_job, 'PX', string.format('%d', math.max(due - now, 0) + KEY_TTL))
      end
    elseif holder == job then
      redis.call('DEL', key)
    end
    redis.call('HDEL', latest, job, job .. '+')
  end
end
