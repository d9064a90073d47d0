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
-- @include ttl
-- @include postpone

return postpone_all('snoozed')
