-- enqueue: put a batch of jobs on the stream, once however often the batch is sent.
-- Moves: new -> waiting
-- KEYS: 1 stream, 2 producer, 3 totals, 4 metrics base, 5 latest, 6 config, 7 released, 8.. jobs' dedupe keys
-- ARGV: 1 clock, 2 batch number, 3 token, then runs of jobs of one kind: kind, jobs, form, and per
--       job: body (form "plain"), or body, meta, ms that its dedupe key lives or 0 (form "full", or
--       "latest": newer arguments replace its own, and these those of the job that holds its key)
-- Returns: "<ms> <seq> <added>[ <index> <holder>]*": the added jobs have consecutive ids from <ms>-<seq> on.
--       Left out are, by index from 0: a job whose dedupe key is held, with its holder's id, and one that
--       the queue has no room for, with "full:<max_waiting>". Or "STALEBATCH", "TWOPRODUCERS": nothing done.
-- Cost: O(jobs), and O(consumers) where the queue is bounded; about 1.5 us a plain job, 500 jobs or 1 MiB at most
-- @include now
-- @include counters
-- @include batch
-- @include latest
-- @include vacancy
local stream, producer, totals, metrics, latest = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, token = ARGV[2], ARGV[3]

local earlier = answered(producer, number, token)
if earlier then return earlier end
local count = counters(totals, metrics, now_ms(ARGV[1]))
local room, most = vacancy(stream, KEYS[6], KEYS[7])
local at, key, index, added = 4, 8, 0, 0
local ms, seq, others, per_kind = '0', 0, '', {}

-- `*` is not consecutive on every server, so only the first id is the server's choice.
local function next_id()
  return added > 0 and string.format('%s-%d', ms, seq + added) or nil
end

local function add(id, kind, body, meta)
  local given = redis.call('XADD', stream, id or '*', 'kind', kind, 'body', body, 'meta', meta)
  if not id then
    ms, seq = string.match(given, '^(%d+)-(%d+)$')
    seq = tonumber(seq)
  end
  added = added + 1
  return given
end
local function refuse()
  others = others .. ' ' .. index .. ' full:' .. most
end

while ARGV[at] do
  local kind, jobs, form = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local before = added
  at = at + 3
  for _ = 1, jobs do
    if form == 'plain' then
      if added < room then add(next_id(), kind, ARGV[at], '') else refuse() end
      at = at + 1
    else
      local id, ttl = added < room and next_id(), ARGV[at + 2]
      -- An id that is known before takes its key in one command; what follows it in the batch cannot fail.
      local taken = id and ttl ~= '0' and redis.call('SET', KEYS[key], id, 'NX', 'PX', ttl)
      local holder = not taken and ttl ~= '0' and redis.call('GET', KEYS[key])
      if holder then
        others = others .. ' ' .. index .. ' ' .. holder
        if form == 'latest' then
          replace(latest, holder, KEYS[key], ttl, 0, kind, ARGV[at], ARGV[at + 1])
        end
      elseif added >= room then
        refuse()
      else
        id = add(id, kind, ARGV[at], ARGV[at + 1])
        if not taken and ttl ~= '0' then redis.call('SET', KEYS[key], id, 'PX', ttl) end
        if form == 'latest' then expect(latest, id, kind, '0') end
      end
      if ttl ~= '0' then key = key + 1 end
      at = at + 3
    end
    index = index + 1
  end
  per_kind[kind] = (per_kind[kind] or 0) + added - before
end

for kind, n in pairs(per_kind) do
  if n > 0 then count('enqueued', kind, n) end
end
return remember(producer, number, token, string.format('%s %d %d', ms, seq, added) .. others)
