-- bury: send running entries to the dead stream, with the reason and the history. Newer arguments follow
-- as a job of their own.
-- Moves: running -> dead, new -> waiting, new -> scheduled
-- KEYS: 1 stream, 2 dead, 3 dead ids, 4 moved, 5 suspects, 6 totals, 7 metrics base, 8 latest, 9 ids,
--       10 scheduled, 11 bodies, 12 bell, 13.. dedupe and result keys
-- ARGV: 1 clock, 2 consumer, 3 channel for results, then groups (include/groups.lua) with per entry:
--       id, deliveries, job, reason, error, attempts, history (JSON), position of its dedupe key in
--       KEYS or 0, position of its result key or 0, ms to keep how it ended, how it ended
-- Returns: pairs index (from 0), LOST of those that this consumer does not hold
-- Cost: O(entries); about 15 us each, 500 or 1 MiB at most
-- @include now
-- @include counters
-- @include fence
-- @include entry
-- @include leave
-- @include follow
-- @include groups
local stream, dead, dead_ids, moved, suspects = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local consumer, channel = ARGV[2], ARGV[3]

redis.call('XACK', stream, 'workers', '0-1')
local now = now_ms(ARGV[1])
local latest, count = KEYS[8], counters(KEYS[6], KEYS[7], now)
local follow = follower(stream, now, count, unpack(KEYS, 8, 12))
local known = {kind = true, body = true, meta = true}

-- kind, body and meta are copied from the entry as they are, and so is what else somebody put there.
local function bury(i)
  local id, job, reason = ARGV[i], ARGV[i + 2], ARGV[i + 3]
  if not held(stream, id, consumer, ARGV[i + 1]) then return 'LOST' end
  local fields, flat = read(stream, id)
  if not fields then return 'LOST' end
  local key, result = KEYS[tonumber(ARGV[i + 7])], KEYS[tonumber(ARGV[i + 8])]
  local n, body = 0, nil
  if key then n, body = arguments(latest, job) end
  local row = {
    'id', job, 'kind', fields.kind or '', 'body', body or fields.body or '', 'meta', fields.meta or '',
    'reason', reason, 'error', ARGV[i + 4], 'attempts', ARGV[i + 5], 'history', ARGV[i + 6],
    'died_at', string.format('%d', now),
  }
  if n > 0 then
    row[#row + 1] = 'newer'
    row[#row + 1] = string.format('%d', n)
  end
  for f = 1, math.min(#flat, 200), 2 do
    if not known[flat[f]] then
      row[#row + 1] = 'x:' .. flat[f]
      row[#row + 1] = flat[f + 1]
    end
  end
  redis.call('HSET', dead_ids, job, redis.call('XADD', dead, '*', unpack(row)))
  if result then tell(result, channel, ARGV[i + 9], ARGV[i + 10], job) end
  if key then follow(job, nil, key) end
  leave(stream, id, moved, job, suspects)
end

return each_group(4, 11, 'dead', count, bury)
