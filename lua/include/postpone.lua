-- postpone(zset, i): move the running entry whose words start at ARGV[i] to `zset`; the words are
-- entry, deliveries, job, delay ms, meta, and the position of its dedupe key in KEYS (0: none).
-- Returns nil, or LOST when this consumer no longer holds it. Needs fence, entry, envelope, leave.
local function postpone(zset, consumer, now, i)
  local stream, bodies, moved, suspects = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
  local id, job, delay = ARGV[i], ARGV[i + 2], tonumber(ARGV[i + 3])
  local key = KEYS[tonumber(ARGV[i + 5])]
  if not held(stream, id, consumer, ARGV[i + 1]) then return 'LOST' end
  local fields = read(stream, id)
  if not fields then return 'LOST' end
  redis.call('HSET', bodies, job, pack(fields.kind or '', fields.body or '', ARGV[i + 4]))
  redis.call('ZADD', zset, string.format('%d', now + delay), job)
  if key and redis.call('GET', key) == job then
    redis.call('PEXPIRE', key, string.format('%d', delay + 604800000))
  end
  leave(stream, id, moved, job, suspects)
end
