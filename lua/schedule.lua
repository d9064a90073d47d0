-- schedule: put a batch of jobs into the set of scheduled ones, once however often it is sent.
-- Moves: new -> scheduled
-- KEYS: 1 ids, 2 scheduled, 3 bodies, 4 retries, 5 bell, 6 producer, 7 totals, 8 metrics base,
--       9 latest, 10.. dedupe keys of the jobs that have one
-- ARGV: 1 clock, 2 batch number, 3 token, then per job: kind, body, meta, delay ms, instant ms or 0
--       (wins over the delay), ms beyond run_after that its dedupe key lives or 0, 1 if newer arguments
--       replace its own, and these those of the job that holds its key
-- Returns: as enqueue; the ids begin with "d", which <ms> lacks
-- Cost: O(jobs log scheduled); about 5 us a job, 500 jobs or 1 MiB at most
-- @include now
-- @include counters
-- @include batch
-- @include envelope
-- @include latest
-- @include bell
local ids, scheduled, bodies, retries, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local producer, totals, metrics, latest = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local number, token = ARGV[2], ARGV[3]

local earlier = answered(producer, number, token)
if earlier then return earlier end

local now = now_ms(ARGV[1])
local count = counters(totals, metrics, now)
local head = next_due(scheduled, retries)
local earliest
local key, index, added = 10, 0, 0
local others = ''
local per_kind = {}

-- An id of its own stream: an XADD and XDEL on the job stream would wake every blocked reader. All
-- ids are taken before the first is used: an error half way must not let one be given again.
local ms, seq = string.match(redis.call('XADD', ids, 'MAXLEN', 0, '*', 'x', ''), '^(%d+)-(%d+)$')
seq = tonumber(seq)
local last = string.format('%s-%d', ms, seq + (#ARGV - 3) / 7 - 1)
if #ARGV > 10 then redis.call('XADD', ids, 'MAXLEN', 0, last, 'x', '') end

for at = 4, #ARGV, 7 do
  local kind, instant, ttl = ARGV[at], tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  -- An instant that has passed is now: the age of the oldest ready job counts from here.
  local due = math.max(now, instant > 0 and instant or now + tonumber(ARGV[at + 3]))
  local alive = string.format('%d', math.max(due - now, 0) + ttl)
  local holder = ttl > 0 and redis.call('GET', KEYS[key])
  if holder then
    others = others .. ' ' .. index .. ' ' .. holder
    if ARGV[at + 6] == '1' then
      replace(latest, holder, KEYS[key], alive, due, kind, ARGV[at + 1], ARGV[at + 2])
    end
  else
    local id = string.format('d%s-%d', ms, seq + added)
    redis.call('HSET', bodies, id, pack(kind, ARGV[at + 1], with_id(ARGV[at + 2], id)))
    redis.call('ZADD', scheduled, string.format('%d', due), id)
    if ttl > 0 then redis.call('SET', KEYS[key], id, 'PX', alive) end
    if ARGV[at + 6] == '1' then expect(latest, id, kind, '0') end
    earliest = math.min(earliest or due, due)
    added = added + 1
    per_kind[kind] = (per_kind[kind] or 0) + 1
  end
  if ttl > 0 then key = key + 1 end
  index = index + 1
end

for kind, n in pairs(per_kind) do
  count('enqueued', kind, n)
  count('delayed', kind, n, false)
end
if earliest and (not head or earliest < head) then ring(bell) end
return remember(producer, number, token, string.format('%s %d %d', ms, seq, added) .. others)
