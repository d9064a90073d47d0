-- vacate: give up the slots of executions that have ended, and let those go who wait for them.
-- Only what this start took: a slot that went over to another holder of the entry is that one's.
-- Moves: none
-- KEYS: 1 stream, 2 line, 3 slots, 4 wake, 5 gone, 6 tats, 7 limits, 8 config, 9 released, 10 bell
-- ARGV: 1 clock, 2 "1" to ring for those who may go on, "0" when the caller takes them, then per
--       execution: entry, deliveries (0: whatever the entry has there, if it is gone), lanes, and the lanes
-- Returns: how many may go on: they lie with what was given back
-- Cost: O(lanes * log waiting); about 3 us a lane, and 10 us for each that goes on
-- @include now
-- @include entry
-- @include bell
-- @include lanes
-- @include line
local slots = KEYS[3]

redis.call('XACK', KEYS[1], 'workers', '0-1')
local lanes = open_lanes(2, now_us(ARGV[1]))
local at = 3
while ARGV[at] do
  local id, deliveries = ARGV[at], ARGV[at + 1]
  local gone = deliveries == '0' and not pending(KEYS[1], id)
  for i = at + 3, at + 2 + ARGV[at + 2] do
    local slot = ARGV[i] .. '\n' .. id .. '/' .. deliveries
    if gone then slot = own_slot(lanes, ARGV[i], id) end
    if slot and (gone or deliveries ~= '0') and redis.call('ZREM', slots, slot) == 1 then serve(lanes, ARGV[i]) end
  end
  at = at + 3 + ARGV[at + 2]
end
if lanes.woken > 0 and ARGV[2] == '1' then ring(lanes.bell) end
return lanes.woken
