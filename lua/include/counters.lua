-- counters(totals, base, now): a function count(field, kind, n, total) that adds to the queue's totals and
-- to the hash of this minute, which lives 26 h. Without a kind it counts in the totals alone, with
-- total = false in the minute alone; kind "" stands for the whole queue.
-- Kinds come from producers: when a minute has too many, further ones count as "_other".
-- Best effort: where somebody else has written what cannot be counted on, the move stands uncounted.
local MOST_FIELDS = 5000

local function counters(totals, base, now)
  local minute = base .. string.format('%d', math.floor(now / 60000))
  return function(field, kind, n, total)
    if total ~= false then redis.pcall('HINCRBY', totals, field, n) end
    local fields = kind and redis.pcall('HLEN', minute)
    if type(fields) ~= 'number' then return end
    local name = field .. ':' .. kind
    if fields >= MOST_FIELDS and redis.call('HEXISTS', minute, name) == 0 then
      name = field .. ':_other'
    end
    -- A field that is new may be the hash's first.
    if redis.pcall('HINCRBY', minute, name, n) == n then redis.call('PEXPIRE', minute, 93600000) end
  end
end

-- add_sums(count, kind, first, last, share): add the sums of a group, pairs of field and value in ARGV,
-- to this minute, scaled to the share of the group that was changed.
local function add_sums(count, kind, first, last, share)
  for i = first, last, 2 do
    count(ARGV[i], kind, math.floor(ARGV[i + 1] * share + 0.5), false)
  end
end
