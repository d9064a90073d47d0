-- A suspect's value is "<marks> <releases>[ <consumer>@<ms>/<delivery>]*": unsettled starts that were marked
-- (-1 when the unmarked first one ended in a release), how often no process was free to run it
-- alone, and the starts that never ended.
local function suspect_of(suspects, id)
  local value = redis.call('HGET', suspects, id) or '0 0'
  local marks, releases, starts = string.match(value, '^(-?%d+) (%d+)(.*)$')
  return tonumber(marks), tonumber(releases), starts
end

local function keep_suspect(suspects, id, marks, releases, starts)
  if marks == 0 and releases == 0 and starts == '' then
    redis.call('HDEL', suspects, id)
  else
    redis.call('HSET', suspects, id, string.format('%d %d', marks, releases) .. starts)
  end
end
