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
