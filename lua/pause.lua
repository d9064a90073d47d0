-- pause: let no job of a queue start any more, or go on. Running jobs are left alone, and what is
-- due is promoted all the same.
-- Moves: none
-- KEYS: 1 stream, 2 config, 3 workers, 4 bell
-- ARGV: 1 "pause" or "resume"
-- Returns: 1, or 0 if it was so already
-- Cost: O(workers); about 5 us
-- @include group
local stream, config, workers, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

redis.call('XACK', stream, 'workers', '0-1')
local failed = make_group(stream, config)
if failed then return failed end
local stood = paused(config)
if (stood and 'pause' or 'resume') == ARGV[1] then return 0 end

if stood then
  redis.call('XGROUP', 'SETID', stream, 'workers', stood)
  redis.call('HDEL', config, 'paused')
  -- A ring for each worker: a read that waits on the server does not see that the group was moved.
  for _ = 1, redis.call('HLEN', workers) do redis.call('LPUSH', bell, '1') end
  return 1
end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local fields = {}
  for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
  if fields.name == 'workers' then stood = fields['last-delivered-id'] end
end
redis.call('HSET', config, 'paused', stood)
redis.call('XGROUP', 'SETID', stream, 'workers', NOTHING_AFTER)
return 1
