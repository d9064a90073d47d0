-- counters(totals, base, now): a function count(field, kind, n) that adds to the queue's totals and
-- to the hash of this minute, which lives 26 h. Without a kind it counts in the totals alone, with
-- total = false in the minute alone.
local function counters(totals, base, now)
  local minute = base .. string.format('%d', math.floor(now / 60000))
  return function(field, kind, n, total)
    if total ~= false then redis.call('HINCRBY', totals, field, n) end
    if kind then
      redis.call('HINCRBY', minute, field .. ':' .. kind, n)
      redis.call('PEXPIRE', minute, 93600000)
    end
  end
end

-- add_sums(count, kind, first, last, share): add the sums of a group, pairs of field and value in ARGV,
-- to this minute, scaled to the share of the group that was changed.
local function add_sums(count, kind, first, last, share)
  for i = first, last, 2 do
    count(ARGV[i], kind, string.format('%d', math.floor(ARGV[i + 1] * share + 0.5)), false)
  end
end
