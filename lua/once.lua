-- once: look whether an effect is recorded; where it is not, mark it as begun by the run that asks.
-- A mark speaks for a run under way as long as its worker holds that entry, and was heard of within
-- a lease. Any other is that of a run that ended between its begin and its record: nobody can say
-- whether the effect happened.
-- Moves: none
-- KEYS: 1 stream, 2 once key
-- ARGV: 1 clock, 2 consumer, 3 its entry, 4 its job, 5 a token of this begin (hexadecimal digits), 6
--       lease ms, 7 "1" to begin in the place of a run that is no more, 8 ms that the mark is kept
-- Returns: BEGUN; DONE with the value (JSON); UNDERWAY with the job; UNSURE with the job and the ms at
--       which it began; or LOST, where this consumer does not hold the entry. The same token again
--       gets the same answer
-- Cost: O(1); about 8 us
-- @include now
local stream, key = KEYS[1], KEYS[2]
local consumer, entry, job, token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

redis.call('XACK', stream, 'workers', '0-1')

local function holder(id)
  local row = redis.call('XPENDING', stream, 'workers', id, id, 1)[1]
  if row then return row[2], row[3] end
  return '', 0
end

-- Without this, who woke up after a freeze would take the run that replaced it for its own past.
if holder(entry) ~= consumer then return {'LOST'} end

local mark = redis.call('GET', key) or ''
local value = string.match(mark, '^done %d+ [^ ]+ (.*)$')
if value then return {'DONE', value} end

local word, by, worker, at, since, whose = string.match(mark, '^(%a+) (%x+) ([^ ]+) ([^ ]+) (%d+) ([^ ]+)$')
if by == token then return word == 'again' and {'UNSURE', whose, since} or {'BEGUN'} end
if word and not (worker == consumer and at == entry) then
  -- By worker and entry alone: a sweep of its own may have raised the delivery count under the run.
  local held_by, silent = holder(at)
  if held_by == worker and silent < tonumber(ARGV[6]) then return {'UNDERWAY', whose} end
end
if not word or ARGV[7] == '1' then
  local begun = {word and 'again' or 'begun', token, consumer, entry, string.format('%d', now_ms(ARGV[1])), job}
  redis.call('SET', key, table.concat(begun, ' '), 'PX', ARGV[8])
end
return word and {'UNSURE', whose, since} or {'BEGUN'}
