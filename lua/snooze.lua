-- snooze: send running entries to the set of scheduled ones; nothing is charged.
-- Moves: running -> scheduled
-- KEYS: 1 stream, 2 scheduled, 3 bodies, 4 moved, 5 suspects, 6 retries, 7 bell, 8 totals,
--       9 metrics base, 10.. dedupe keys
-- ARGV: as retry
-- Returns: as retry
-- Cost: as retry
-- @include now
-- @include counters
-- @include fence
-- @include entry
-- @include envelope
-- @include bell
-- @include leave
-- @include groups
-- @include postpone
local consumer = ARGV[2]

redis.call('XACK', KEYS[1], 'workers', '0-1')
local now = now_ms(ARGV[1])
local head = next_due(KEYS[2], KEYS[6])
local words = each_group(3, 6, 'snoozed', counters(KEYS[8], KEYS[9], now), function(i)
  return postpone(KEYS[2], consumer, now, i)
end)
local due = next_due(KEYS[2], KEYS[6])
if due and (not head or due < head) then ring(KEYS[7]) end
return words
