-- A suspect's value is "<marks> <releases>[ <consumer>@<ms>/<delivery>]*": unsettled starts that were marked
-- (-1 when the unmarked first one ended in a release), how often no process was free to run it
-- alone, and the starts that never ended.
local function suspect_of(suspects, id)
  local value = redis.call('HGET', suspects, id) or '0 0'
  local marks, releases, starts = string.match(value, '^(-?%d+) (%d+)(.*)$')
  -- Not ours: as if nothing had been noted.
  if not marks then return 0, 0, '' end
  return tonumber(marks), tonumber(releases), starts
end

local function keep_suspect(suspects, id, marks, releases, starts)
  if marks == 0 and releases == 0 and starts == '' then
    redis.call('HDEL', suspects, id)
  else
    redis.call('HSET', suspects, id, string.format('%d %d', marks, releases) .. starts)
  end
end

-- mark_start(suspects, id, consumer, deliveries, presumed, now): record a start that is about to happen.
local function mark_start(suspects, id, consumer, deliveries, presumed, now)
  local marks, releases, starts = suspect_of(suspects, id)
  -- A call sent again after a lost reply must not count its start twice.
  if string.match(starts, '/(%d+)$') == deliveries then return end
  if starts == '' and presumed ~= '' then starts = ' ' .. presumed end
  starts = starts .. ' ' .. consumer .. string.format('@%d/', now) .. deliveries
  keep_suspect(suspects, id, marks + 1, releases, starts)
end

-- unmark(suspects, id): take back the start that would be presumed of an entry's first delivery.
local function unmark(suspects, id)
  local marks, releases, starts = suspect_of(suspects, id)
  keep_suspect(suspects, id, marks - 1, releases, starts)
end
