-- complete: end entries as done. The first success wins, whoever brings it: an entry that is still
-- there is ended, one that is gone answers LOST. Newer arguments follow as a job of their own.
-- Moves: running -> done, waiting -> done, new -> waiting, new -> scheduled
-- KEYS: 1 stream, 2 released, 3 suspects, 4 moved, 5 totals, 6 metrics base, 7 latest, 8 ids,
--       9 scheduled, 10 bodies, 11 bell, 12.. dedupe and result keys
-- ARGV: 1 clock, 2 channel for results, then groups: kind, form, entries, sums, (field, value) * sums,
--       and per entry: id (form "plain"), or id, job, position of its dedupe key in KEYS or 0,
--       position of its result key or 0, ms to keep the result, the result, in the mode Latest how many
--       starts had taken newer arguments when this one began, else "" (form "full")
-- Returns: pairs index (from 0), LOST of those that were gone
-- Cost: O(entries); about 1.5 us a plain one, 500 at most
-- @include now
-- @include counters
-- @include follow
local stream, released, suspects, moved, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]

redis.call('XACK', stream, 'workers', '0-1')
local now = now_ms(ARGV[1])
local count = counters(KEYS[5], KEYS[6], now)
local follow = follower(stream, now, count, unpack(KEYS, 7, 11))
local aside = redis.call('EXISTS', released, suspects) > 0
local words, index = {}, 0

local function lost(i)
  words[#words + 1] = index + i
  words[#words + 1] = 'LOST'
end

-- All acknowledged: one XDEL for the group. Else XDEL decides one by one, for after the loss of the
-- group XACK answers 0 for a good success.
local function plain(first, entries)
  local ids = {unpack(ARGV, first, first + entries - 1)}
  if aside then
    redis.call('SREM', released, unpack(ids))
    redis.call('HDEL', suspects, unpack(ids))
  end
  if redis.call('XACK', stream, 'workers', unpack(ids)) == entries then
    return redis.call('XDEL', stream, unpack(ids))
  end
  local done = 0
  for i, id in ipairs(ids) do
    if redis.call('XDEL', stream, id) == 1 then done = done + 1 else lost(i - 1) end
  end
  return done
end

local function full(first, entries)
  local done = 0
  for i = 0, entries - 1 do
    local at = first + 7 * i
    local id, job = ARGV[at], ARGV[at + 1]
    local key, result, ran = KEYS[tonumber(ARGV[at + 2])], KEYS[tonumber(ARGV[at + 3])], tonumber(ARGV[at + 6])
    if #redis.call('XRANGE', stream, id, id) == 1 then
      if result then tell(result, channel, ARGV[at + 4], ARGV[at + 5], job) end
      if key and ran then follow(job, ran, key) elseif key then free(key, job) end
      if aside then redis.call('SREM', released, id) end
      leave(stream, id, moved, job, suspects)
      done = done + 1
    else
      lost(i)
    end
  end
  return done
end

local at = 3
while ARGV[at] do
  local kind, form, entries, sums = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local values = at + 4
  local first = values + 2 * sums
  local done = form == 'plain' and plain(first, entries) or form == 'full' and full(first, entries) or 0
  if done > 0 then
    count('done', kind, done)
    add_sums(count, kind, values, first - 1, done / entries)
  end
  index = index + entries
  at = first + entries * (form == 'plain' and 1 or 7)
end
if #words > 0 then count('lost', '', #words / 2) end
return words
