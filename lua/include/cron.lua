-- standing(cron, name): where a cron stands, or nil. The value is "<last> <since> <runs> <late> <skipped>
-- <job> <schedule>": the last slot dealt with, the instant from which on slots of this schedule count, what
-- became of slots so far, the last run's job or "-".
local function standing(cron, name)
  local value = redis.call('HGET', cron, name)
  if not value then return nil end
  local last, since, runs, late, skipped, job, schedule =
    string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  -- Not ours: as if it had never been there.
  if not last then return nil end
  return {
    last = tonumber(last), since = tonumber(since), runs = tonumber(runs), late = tonumber(late),
    skipped = tonumber(skipped), job = job, schedule = schedule,
  }
end

local function keep_standing(cron, name, at)
  local numbers = string.format('%d %d %d %d %d ', at.last, at.since, at.runs, at.late, at.skipped)
  redis.call('HSET', cron, name, numbers .. at.job .. ' ' .. at.schedule)
end
