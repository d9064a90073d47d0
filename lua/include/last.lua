-- last_given(key): ms and number of the last id that a stream has given, or nil where there is none.
local function last_given(key)
  if redis.call('EXISTS', key) == 0 then return nil end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      local ms, seq = string.match(info[i + 1], '(%d+)-(%d+)$')
      return tonumber(ms), tonumber(seq)
    end
  end
end
