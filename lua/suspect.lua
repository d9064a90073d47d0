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
    local marks, releases, starts = suspect_of(suspects, id)
    -- A call sent again after a lost reply must not count its start twice.
    if string.match(starts, '/(%d+)$') ~= ARGV[i + 1] then
      if starts == '' and presumed ~= '' then starts = ' ' .. presumed end
      starts = starts .. ' ' .. consumer .. string.format('@%d/', now) .. ARGV[i + 1]
      keep_suspect(suspects, id, marks + 1, releases, starts)
    end
  else
    words[#words + 1] = (i - 3) / 3
    words[#words + 1] = 'LOST'
  end
end
return words
