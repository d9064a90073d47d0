-- lookup: find a job wherever it is, in one step; separate calls would miss one on the move.
-- Moves: none
-- KEYS: 1 stream, 2 ids, 3 moved, 4 scheduled, 5 retries, 6 bodies, 7 dead, 8 dead ids, 9 result,
--       10 suspects, 11 latest, 12 what it became
-- ARGV: 1 job
-- Returns: field, value pairs, "state" first: waiting or running with entry, kind, body, meta (and
--       consumer, idle_ms, deliveries, marks, and follows: 1 for newer arguments that wait behind a
--       running one); scheduled with due_ms, retrying, kind, body, meta; dead with entry, promise ("" for none)
--       and the fields of its row; ended with result; finished; or unknown; of the last three, became where it
--       began anew as another job. The body is what it runs with or starts with next
-- Cost: O(1); about 10 us
-- @include entry
-- @include suspects
-- @include latest
-- @include promise
-- @include given
local stream, ids, moved, scheduled, retries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local bodies, dead, dead_ids, suspects = KEYS[6], KEYS[7], KEYS[8], KEYS[10]
local latest, job = KEYS[11], ARGV[1]

local function body_of(body, runs)
  local _, newest = of_latest(latest, job .. '+')
  if newest and not runs then return (select(2, unpack_envelope(newest))) end
  return select(2, arguments(latest, job)) or body
end

local function in_stream(id, fields)
  local row = pending(stream, id)
  local held = runs(row)
  local found = {
    'state', held and 'running' or 'waiting', 'entry', id, 'kind', fields.kind or '',
    'body', body_of(fields.body or '', held), 'meta', fields.meta or '',
  }
  if row then
    local marks, follows = (suspect_of(suspects, id)), held and redis.call('HEXISTS', latest, job .. '+') or 0
    local more = {'consumer', row[2], 'idle_ms', row[3], 'deliveries', row[4], 'marks', marks, 'follows', follows}
    for _, word in ipairs(more) do found[#found + 1] = word end
  end
  return found
end

local function in_dead(entry, promise)
  local found = {'state', 'dead', 'entry', entry, 'promise', promise}
  local _, flat = read(dead, entry)
  -- Deleted by hand: nothing is known of it any more.
  if not flat then return nil end
  for _, word in ipairs(flat) do found[#found + 1] = word end
  return found
end

local id, fields = locate(stream, moved, job)
if id then return in_stream(id, fields) end
local envelope = redis.call('HGET', bodies, job)
if envelope then
  local kind, body, meta = unpack_envelope(envelope)
  local retry = redis.call('ZSCORE', retries, job)
  local due = retry or redis.call('ZSCORE', scheduled, job) or '0'
  return {
    'state', 'scheduled', 'due_ms', due, 'retrying', retry and '1' or '0',
    'kind', kind, 'body', body_of(body, false), 'meta', meta,
  }
end
local entry, promise = row_of(dead_ids, job)
local row = entry and in_dead(entry, promise)
if row then return row end
local result, became = redis.call('GET', KEYS[9]), redis.call('GET', KEYS[12])
local found = {'state', 'ended', 'result', result}
if not result then
  found = {'state', given(string.sub(job, 1, 1) == 'd' and ids or stream, job) and 'finished' or 'unknown'}
end
if became then
  found[#found + 1] = 'became'
  found[#found + 1] = became
end
return found
