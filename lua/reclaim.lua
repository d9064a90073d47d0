-- reclaim: claim entries that have been silent for a lease, one bounded step of a sweep; none
-- while the queue is paused.
-- XPENDING finds them and XCLAIM takes them, which is what XAUTOCLAIM does, but answers alike on
-- every server, names the former holder, and costs a tenth: since 7.0 XAUTOCLAIM looks up each
-- entry that it passes, 0.7 us against 0.07.
-- Moves: running -> running, waiting -> running
-- KEYS: 1 stream, 2 released, 3 suspects, 4 totals, 5 config
-- ARGV: 1 clock, 2 consumer, 3 lease ms, 4 where the sweep stands ("-" at its begin), 5 entries at
--       most, 6 pending entries to pass at most
-- Returns: where the next step goes on ("-": the sweep is through), then per entry: id, fields,
--       deliveries, its suspect value or "", "<former holder>@<ms last heard of>/<its delivery>" (""
--       for one that was given back: there is no start to presume)
-- Cost: O(entries passed); about 0.2 us each, and 6 us for each one claimed
-- @include now
-- @include group
local stream, released, suspects, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local consumer, lease, from = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local most, window = tonumber(ARGV[5]), tonumber(ARGV[6])

redis.call('XACK', stream, 'workers', '0-1')
if paused(KEYS[5]) then return {'-'} end
local now = now_ms(ARGV[1])
local rows = redis.call('XPENDING', stream, 'workers', from, '+', window)
local silent = 0
-- An empty step is not the end of the sweep: the silent entry may stand behind many live ones.
local claimed = {#rows == window and '(' .. rows[window][1] or '-'}

for _, row in ipairs(rows) do
  local id, holder, idle, count = row[1], row[2], row[3], row[4] + 1
  if idle >= lease then
    if #claimed > most then
      claimed[1] = id
      break
    end
    local entry = redis.call('XCLAIM', stream, 'workers', consumer, 0, id, 'RETRYCOUNT', count)[1]
    if entry then
      local last = ''
      if holder ~= 'released' then
        last = holder .. string.format('@%d/%d', now - idle, row[4])
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
end
if silent > 0 then redis.call('HINCRBY', totals, 'reclaimed', silent) end
return claimed
