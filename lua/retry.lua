-- retry: send failed entries to the set of retries, with one failure more in their meta.
-- Moves: running -> scheduled
-- KEYS: 1 stream, 2 retries, 3 bodies, 4 moved, 5 suspects, 6 scheduled, 7 bell, 8 totals,
--       9 metrics base, 10.. dedupe keys
-- ARGV: 1 clock, 2 consumer, then groups (include/groups.lua) with per entry: id, deliveries, job,
--       delay ms, new meta, position of its dedupe key in KEYS or 0
-- Returns: pairs index (from 0), LOST of those that this consumer does not hold
-- Cost: O(entries log retries); about 12 us each, 500 or 1 MiB at most
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

return postpone_all('retried')
