-- @include ttl
-- prolong(base, job, meta): the dedupe key of a job that was due long ago must not end while the job waits.
-- A window ends all the same. The key's name is the base and what the meta says.
local function prolong(base, job, meta)
  if not string.find(meta, '"dk":', 1, true) then return end
  local ok, object = pcall(cjson.decode, meta)
  if not ok or type(object) ~= 'table' or type(object.dk) ~= 'string' or object.dw then return end
  local key = base .. object.dk
  if redis.call('GET', key) == job then redis.call('PEXPIRE', key, KEY_TTL) end
end
