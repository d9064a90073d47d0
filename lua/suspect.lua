-- suspect: mark claims that were delivered before, just before they start.
-- Moves: none
-- KEYS: 1 stream, 2 suspects
-- ARGV: 1 clock, 2 consumer, then per entry: id, deliveries, the presumed start before it or ""
-- Returns: pairs index (from 0), LOST of those that this consumer does not hold
-- Cost: O(entries); about 4 us each
-- @include now
-- @include fence
-- @include suspects
local stream, suspects, consumer = KEYS[1], KEYS[2], ARGV[2]

redis.call('XACK', stream, 'workers', '0-1')
local now = now_ms(ARGV[1])
local words = {}
for i = 3, #ARGV, 3 do
  local id, presumed = ARGV[i], ARGV[i + 2]
  if held(stream, id, consumer, ARGV[i + 1]) then
    mark_start(suspects, id, consumer, ARGV[i + 1], presumed, now)
  else
    words[#words + 1] = (i - 3) / 3
    words[#words + 1] = 'LOST'
  end
end
return words
