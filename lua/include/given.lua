-- given(key, job): whether an id is not beyond the last one that this stream has given.
-- @include last
local function given(key, job)
  local last_ms, last_seq = last_given(key)
  if not last_ms then return false end
  local ms, seq = string.match(job, '(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  return ms < last_ms or ms == last_ms and seq <= last_seq
end
