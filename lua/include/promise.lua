-- A dead job that is to begin anew as another job, perhaps in another queue, is promised first: its field in
-- dead:ids is then "<entry> <queue> <ms>", not "<entry>". Nobody replays or purges it before the promise has an end.

-- row_of(dead_ids, job): the entry of a dead job's row, and its promise, "" for none; or nil.
local function row_of(dead_ids, job)
  return string.match(redis.call('HGET', dead_ids, job) or '', '^(%S+) ?(.*)$')
end

-- How long it is known what became of a promise, in ms: 14 days. One without an end is asked about for half of that.
local PROMISE_TTL = 1209600000

-- stale(promise, now): whether nobody can know any more what became of it.
local function stale(promise, now)
  return now - tonumber(string.match(promise, '%d+$')) > PROMISE_TTL / 2
end
