-- postpone_all(word): move running entries to the set KEYS[2], and ring when one of them is due before
-- all that the sleepers know of. KEYS: 1 stream, 2 the set, 3 bodies, 4 moved, 5 suspects, 6 the other
-- set, 7 bell, 8 totals, 9 metrics base, 10.. dedupe keys. ARGV: 1 clock, 2 consumer, then groups of
-- entry, deliveries, job, delay ms, meta, position of its dedupe key in KEYS or 0. Needs now, counters,
-- fence, entry, envelope, bell, leave, groups, ttl.
local function postpone_all(word)
  local stream, zset, bodies, moved, suspects = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
  redis.call('XACK', stream, 'workers', '0-1')
  local now = now_ms(ARGV[1])
  local head = next_due(zset, KEYS[6])

  local function postpone(i)
    local id, job, delay = ARGV[i], ARGV[i + 2], tonumber(ARGV[i + 3])
    local key = KEYS[tonumber(ARGV[i + 5])]
    if not held(stream, id, ARGV[2], ARGV[i + 1]) then return 'LOST' end
    local fields = read(stream, id)
    if not fields then return 'LOST' end
    redis.call('HSET', bodies, job, pack(fields.kind or '', fields.body or '', ARGV[i + 4]))
    redis.call('ZADD', zset, string.format('%d', now + delay), job)
    if key and redis.call('GET', key) == job then
      redis.call('PEXPIRE', key, string.format('%d', delay + KEY_TTL))
    end
    leave(stream, id, moved, job, suspects)
  end

  local words = each_group(3, 6, word, counters(KEYS[8], KEYS[9], now), postpone)
  local due = next_due(zset, KEYS[6])
  if due and (not head or due < head) then ring(KEYS[7]) end
  return words
end
