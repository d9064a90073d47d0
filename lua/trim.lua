-- trim: delete the oldest dead jobs of a queue that keeps only so many, or none that died longer ago. What an
-- operator set goes before what the code says; without either all are kept.
-- Moves: dead -> gone
-- KEYS: 1 dead, 2 dead ids, 3 totals, 4 metrics base, 5 config
-- ARGV: 1 clock, 2 jobs at most
-- Returns: how many were deleted, 1 if there are more to delete, what is kept: a count, "<ms>ms", or "" for all
-- Cost: O(jobs); about 5 us each, 500 or 1 MiB at most
-- @include now
-- @include counters
-- @include promise
local dead, dead_ids = KEYS[1], KEYS[2]
local now, most = now_ms(ARGV[1]), tonumber(ARGV[2])
local count = counters(KEYS[3], KEYS[4], now)

local kept = redis.call('HGET', KEYS[5], 'keep_dead') or redis.call('HGET', KEYS[5], 'keep_dead:code') or ''
local number, unit = string.match(kept, '^(%d+)(m?s?)$')
if not number then return {0, 0, ''} end
local excess = unit == '' and redis.call('XLEN', dead) - tonumber(number) or 0
local since = unit == '' and 0 or now - tonumber(number)
local deleted, bytes, kinds = 0, 0, {}

local function delete(entry, flat)
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
    bytes = bytes + #flat[i + 1]
  end
  redis.call('XDEL', dead, entry)
  deleted = deleted + 1
  -- To which no job leads, somebody else's: it was never counted, nor is that it goes.
  if not fields.id or row_of(dead_ids, fields.id) ~= entry then return end
  redis.call('HDEL', dead_ids, fields.id)
  local kind = fields.kind or ''
  kinds[kind] = (kinds[kind] or 0) + 1
end

-- goes(entry): whether the oldest row there is is one too many, or too old.
local function goes(entry)
  return deleted < excess or tonumber(string.match(entry, '^%d+')) < since
end

local more = true
while more and deleted < most and bytes < 1048576 do
  local rows = redis.call('XRANGE', dead, '-', '+', 'COUNT', math.min(20, most - deleted))
  more = #rows > 0
  for _, row in ipairs(rows) do
    more = goes(row[1])
    if not more then break end
    delete(row[1], row[2])
  end
end
for kind, n in pairs(kinds) do count('trimmed', kind, n) end
return {deleted, more and 1 or 0, kept}
