-- leave(stream, id, moved, job, suspects): take a settled entry out, after its job has been written
-- to its new place. XACK and XDEL go together: a deleted entry left pending would never go away.
local function leave(stream, id, moved, job, suspects)
  redis.call('XACK', stream, 'workers', id)
  redis.call('XDEL', stream, id)
  redis.call('HDEL', moved, job)
  redis.call('HDEL', suspects, id)
end

-- free(key, job): give a dedupe key back, unless it has passed to another job.
local function free(key, job)
  if redis.call('GET', key) == job then redis.call('DEL', key) end
end

-- tell(key, channel, ttl, payload, job): keep how a job ended for those who wait for it.
local function tell(key, channel, ttl, payload, job)
  redis.call('SET', key, payload, 'PX', ttl)
  redis.call('PUBLISH', channel, job)
end
