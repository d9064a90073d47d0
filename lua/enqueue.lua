-- enqueue: put a batch of jobs on the stream, once however often the batch is sent.
-- Moves: new -> waiting
-- KEYS: 1 stream, 2 producer, 3 totals, 4 metrics base, 5 latest, 6 config, 7.. jobs' dedupe keys
-- ARGV: 1 clock, 2 batch number, 3 token, then runs of jobs of one kind: kind, jobs, form, ms that the
--       dedupe key of each lives or 0 for none, and per job: body (form "plain"), or body, meta (form "full",
--       or "latest": newer arguments replace its own, and these those of the job that holds its key)
-- Returns: "<ms> <seq> <added>[ <index> <holder>]*": the added jobs have consecutive ids from <ms>-<seq> on.
--       Left out are, by index from 0: a job whose dedupe key is held, with its holder's id, and one that
--       the queue has no room for, with "full:<max_waiting>". Or "STALEBATCH", "TWOPRODUCERS": nothing done.
-- Cost: O(jobs), and O(consumers) where the queue is bounded; about 1.5 us a plain job, 3 us one with a key;
--       500 jobs or 1 MiB at most
-- @include now
-- @include counters
-- @include batch
-- @include key
-- @include latest
-- @include vacancy
local stream, producer, totals, metrics, latest = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, token = ARGV[2], ARGV[3]

local earlier = answered(producer, number, token)
if earlier then return earlier end
local count = counters(totals, metrics, now_ms(ARGV[1]))
local room, most = vacancy(stream, KEYS[6])
local at, key, index, added = 4, 7, 0, 0
local ms, seq, others, per_kind = '0', 0, {}, {}

-- `*` is not consecutive on every server, so only the first id is the server's choice.
local function next_id()
  return added > 0 and ms .. '-' .. string.format('%d', seq + added) or nil
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

local function leave_out(why)
  others[#others + 1] = ' ' .. index .. ' ' .. why
end

while ARGV[at] do
  local kind, jobs, form, ttl = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local before, keyed, words = added, ttl ~= '0', form == 'plain' and 1 or 2
  at = at + 4
  for _ = 1, jobs do
    local body, meta, name = ARGV[at], words == 2 and ARGV[at + 1] or '', keyed and KEYS[key]
    -- A key is taken by the id that the job will have, and by none while that is the server's choice. Between the
    -- two nothing can fail: an id of this batch was taken before, and memory and rights are what they were then.
    local id = added < room and next_id()
    local holder = keyed and take(name, id, ttl)
    if holder then
      leave_out(holder)
      if form == 'latest' then replace(latest, holder, name, ttl, 0, kind, body, meta) end
    elseif added >= room then
      leave_out('full:' .. most)
    else
      local given = add(id, kind, body, meta)
      if keyed and not id then redis.call('SET', name, given, 'PX', ttl) end
      if form == 'latest' then expect(latest, given, kind, '0') end
    end
    if keyed then key = key + 1 end
    at, index = at + words, index + 1
  end
  per_kind[kind] = (per_kind[kind] or 0) + added - before
end

for kind, n in pairs(per_kind) do
  if n > 0 then count('enqueued', kind, n) end
end
return remember(producer, number, token, string.format('%s %d %d', ms, seq, added) .. table.concat(others))
