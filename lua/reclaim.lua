-- reclaim: claim entries that have been silent for a lease, one bounded step of a sweep; none
-- while the queue is paused.
-- XPENDING finds them and XCLAIM takes them, which is what XAUTOCLAIM does, but answers alike on
-- every server, names the former holder, and costs a tenth: since 7.0 XAUTOCLAIM looks up each
-- entry that it passes, 0.7 us against 0.07.
-- Consumer by consumer, so as not to pass those that wait in lanes: they may be a million. They are
-- swept too where `line` has fewer than are parked: it was lost, and they are to be admitted again.
-- Moves: running -> running, waiting -> running
-- KEYS: 1 stream, 2 released, 3 suspects, 4 totals, 5 line, 6 config
-- ARGV: 1 clock, 2 consumer, 3 lease ms, 4 where the sweep stands ("-" at its begin), 5 entries at
--       most, 6 pending entries to pass at most
-- Returns: where the next step goes on ("-": the sweep is through, "": and nothing at all is pending,
--       so that nothing can be silent before a lease has passed), then per entry: id, fields,
--       deliveries, its suspect value or "", "<former holder>@<ms last heard of>/<its delivery>" (""
--       for one that was given back or parked: there is no start to presume)
-- Cost: O(consumers + entries passed); about 0.2 us each, and 6 us for each one claimed
-- @include now
-- @include group
-- @include entry
local stream, released, suspects, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local consumer, lease, most, left = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])

redis.call('XACK', stream, 'workers', '0-1')
if paused(KEYS[6]) then return {'-'} end
local now, silent, claimed = now_ms(ARGV[1]), 0, {'-'}
-- "<id> <consumer>": where the sweep stands, in which list.
local from, current = string.match(ARGV[4], '^(%S+) ?(.*)$')

local function claim(id, holder, idle, deliveries)
  local count = deliveries + 1
  local entry = redis.call('XCLAIM', stream, 'workers', consumer, 0, id, 'RETRYCOUNT', count)[1]
  if entry then
    local last = ''
    if runs({id, holder}) then
      last = holder .. string.format('@%d/%d', now - idle, deliveries)
      silent = silent + 1
    end
    claimed[#claimed + 1] = {id, entry[2], count, redis.call('HGET', suspects, id) or '', last}
  else
    -- Deleted while pending: 6.2 keeps it claimed, newer servers do not.
    redis.call('XACK', stream, 'workers', id)
    redis.call('HDEL', suspects, id)
  end
  redis.call('SREM', released, id)
end

-- sweep(holder): claim what is silent of one holder; return where to go on, or nil when through.
local function sweep(holder)
  local rows = redis.call('XPENDING', stream, 'workers', holder == current and from or '-', '+', left, holder)
  for _, row in ipairs(rows) do
    if row[3] >= lease then
      if #claimed > most then return row[1] end
      claim(row[1], holder, row[3], row[4])
    end
  end
  left = left - #rows
  if left == 0 then return '(' .. rows[#rows][1] end
end

local holders = redis.call('XPENDING', stream, 'workers')[4]
if not holders or #holders == 0 then return {''} end
for at = 2, #holders do
  -- A server names them in order, and to sort 5,000 again takes it 6 ms.
  if holders[at][1] < holders[at - 1][1] then
    table.sort(holders, function(a, b) return a[1] < b[1] end)
    break
  end
end
for _, row in ipairs(holders) do
  local holder, parked = row[1], tonumber(row[2])
  if holder >= current and (holder ~= 'parked' or parked > redis.call('ZCARD', KEYS[5])) then
    local at = sweep(holder)
    if at then
      claimed[1] = at .. ' ' .. holder
      break
    end
  end
end
if silent > 0 then redis.call('HINCRBY', totals, 'reclaimed', silent) end
return claimed
