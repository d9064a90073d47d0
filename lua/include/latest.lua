-- Of a job in the mode Latest, the hash `latest` has, for as long as the job lives,
--   <job>:  "<n> <envelope>": n starts took newer arguments, and these are its own since the last of
--           them; an envelope without a body stands for what the entry has
--   <job>+: "<run_after ms> <envelope>": the newest that came since its last start, where any came.
-- @include envelope

-- expect(latest, job, kind, n): let newer arguments of this kind come for a job from now on.
local function expect(latest, job, kind, n)
  redis.call('HSET', latest, job, n .. ' ' .. pack(kind, '', ''))
end

-- of_latest(latest, field): the number and the envelope of a field, or nil.
local function of_latest(latest, field)
  local value = redis.call('HGET', latest, field)
  if not value then return nil end
  local number, at = string.match(value, '^(%d+) ()')
  return tonumber(number), string.sub(value, at)
end

-- replace(latest, holder, key, ttl, due, kind, body, meta): bring newer arguments to the job that holds
-- the key, unless it expects none, or those of another kind. The key lives on as if they were its first.
local function replace(latest, holder, key, ttl, due, kind, body, meta)
  local _, own = of_latest(latest, holder)
  if not own or unpack_envelope(own) ~= kind then return end
  redis.call('HSET', latest, holder .. '+', string.format('%d ', due) .. pack(kind, body, meta))
  if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
end

-- arguments(latest, job): how many starts took newer arguments, and the body that the last of them took,
-- or nil.
local function arguments(latest, job)
  local n, own = of_latest(latest, job)
  if not n then return 0, nil end
  local _, body = unpack_envelope(own)
  return n, body ~= '' and body or nil
end
