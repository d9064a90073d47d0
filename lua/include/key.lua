-- take(name, id, ttl): take a dedupe key for an id, or return who holds it; without an id only look.
-- One command does both since Redis 7, and none of what makes a value of OK.
local tells = redis.REDIS_VERSION_NUM ~= nil
local function take(name, id, ttl)
  if not id then return redis.call('GET', name) end
  if tells then return redis.call('SET', name, id, 'NX', 'PX', ttl, 'GET') end
  return not redis.call('SET', name, id, 'NX', 'PX', ttl) and redis.call('GET', name)
end
