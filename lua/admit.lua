-- admit: let claims start, as far as the limits of their lanes allow; park the others. A parked entry stays
-- where it is in the stream and goes over to a consumer named "parked"; `line` says where it waits.
-- Lanes come from the narrow to the wide (keys, kind, queue). Who waits in one keeps what it has of the
-- narrower ones, which those behind it could not use either, and nothing of the wider ones; so nobody
-- waits in a circle. Tokens are paid at the start, never before: they cannot pile up.
-- Moves: running -> waiting
-- KEYS: 1 stream, 2 suspects, 3 line, 4 slots, 5 wake, 6 gone, 7 tats, 8 limits, 9 config, 10 released,
--       11 bell
-- ARGV: 1 clock, 2 consumer, 3 limits, then per limit: base, value as the worker's code has it; then per
--       entry: id, deliveries, order (its job's id, of fixed width), mark (-1: never started before, 1: to be
--       marked as suspect does, 0: neither), the presumed start before it or "", lanes, and the lanes
-- Returns: how many wait in the queue's own lanes, then per entry GO, PARKED, or LOST
-- Cost: O(entries * lanes * log waiting); about 12 us for an entry with one lane, 500 at most
-- @include now
-- @include fence
-- @include suspects
-- @include entry
-- @include bell
-- @include lanes
-- @include line
-- @include places
local stream, suspects, consumer = KEYS[1], KEYS[2], ARGV[2]

redis.call('XACK', stream, 'workers', '0-1')
local lanes = open_lanes(3, now_us(ARGV[1]))
local earliest = next_due(lanes.wake, lanes.gone)
local first = 4 + 2 * ARGV[3]
for i = 4, first - 1, 2 do
  -- Kept for those who let jobs go without knowing the code.
  if redis.call('HGET', lanes.limits, ARGV[i]) ~= ARGV[i + 1] then
    redis.call('HSET', lanes.limits, ARGV[i], ARGV[i + 1])
  end
end

-- first_refusing(from, last, id, order): where in ARGV the first lane stands that does not let the entry pass.
local function first_refusing(from, last, id, order)
  for i = from, last do
    if refuses(lanes, ARGV[i], id, order) then return i end
  end
end

local words, at = {0}, first
while ARGV[at] do
  local id, deliveries, order, mark, presumed = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local from, last = at + 6, at + 5 + ARGV[at + 5]
  at = last + 1
  local holds = held(stream, id, consumer, deliveries)
  local refusing = holds and first_refusing(from, last, id, order)
  if not holds then
    words[#words + 1] = 'LOST'
  elseif refusing then
    park(lanes, id, order, from, refusing, last)
    if mark == '-1' then unmark(suspects, id) end
    words[#words + 1] = 'PARKED'
  else
    for i = from, last do take_place(lanes, ARGV[i], id, deliveries) end
    if mark == '1' then mark_start(suspects, id, consumer, deliveries, presumed, lanes.now) end
    words[#words + 1] = 'GO'
  end
end
for lane in pairs(lanes.touched) do serve(lanes, lane) end
for _, lane in ipairs({'c:q', 'r:q'}) do
  words[1] = words[1] + redis.call('ZLEXCOUNT', lanes.line, '[' .. lane .. '\n', '(' .. lane .. '\v')
end
local due = next_due(lanes.wake, lanes.gone)
local sooner = due and due < lanes.now + 5000 and (not earliest or due < earliest)
if lanes.woken > 0 or sooner then ring(lanes.bell) end
return words
