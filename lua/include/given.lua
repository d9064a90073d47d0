-- given(key, job): whether an id is not beyond the last one that this stream has given.
local function given(key, job)
  if redis.call('EXISTS', key) == 0 then return false end
  local info = redis.call('XINFO', 'STREAM', key)
  local last
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = info[i + 1] end
  end
  local ms, seq = string.match(job, '(%d+)-(%d+)$')
  local last_ms, last_seq = string.match(last, '(%d+)-(%d+)$')
  ms, seq, last_ms, last_seq = tonumber(ms), tonumber(seq), tonumber(last_ms), tonumber(last_seq)
  return ms < last_ms or ms == last_ms and seq <= last_seq
end
