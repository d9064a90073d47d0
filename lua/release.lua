-- release: give claims back, for another worker to take at once; nothing is charged.
-- They go over to a consumer named "released", so that no fence of the giver holds any longer. The
-- delivery count stays: lowering it would let a late copy of this call match a new holder.
-- Moves: running -> waiting
-- KEYS: 1 stream, 2 released, 3 suspects, 4 bell, 5 totals
-- ARGV: 1 consumer, 2 lease ms, then per entry: id, deliveries, marks to take back (0 or 1), 1 if it
--       was held for a process of its own in vain, 2 if it is left for one without ringing the bell:
--       whom that wakes would only give it back
-- Returns: pairs index (from 0), LOST of those that this consumer does not hold
-- Cost: O(entries); about 6 us each, 500 at most
-- @include fence
-- @include suspects
-- @include bell
local stream, released, suspects, bell, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local consumer, lease = ARGV[1], ARGV[2]

redis.call('XACK', stream, 'workers', '0-1')
local words, given, rings = {}, 0, false
for i = 3, #ARGV, 4 do
  local id, mark, in_vain = ARGV[i], tonumber(ARGV[i + 2]), ARGV[i + 3] == '1' and 1 or 0
  if held(stream, id, consumer, ARGV[i + 1]) then
    redis.call('SADD', released, id)
    if mark ~= 0 or in_vain == 1 then
      local marks, releases, starts = suspect_of(suspects, id)
      -- The start taken back is the last one, and this consumer's own.
      local before, last = string.match(starts, '^(.*) ([^ ]+)@%d+/%d+$')
      if mark ~= 0 and last == consumer then starts = before end
      keep_suspect(suspects, id, marks - mark, releases + in_vain, starts)
    end
    redis.call('XCLAIM', stream, 'workers', 'released', 0, id, 'IDLE', lease, 'JUSTID')
    given = given + 1
    rings = rings or ARGV[i + 3] ~= '2'
  else
    words[#words + 1] = (i - 3) / 4
    words[#words + 1] = 'LOST'
  end
end
if given > 0 then
  redis.pcall('HINCRBY', totals, 'released', given)
end
if rings then ring(bell) end
return words
