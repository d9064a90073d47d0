-- now_ms(clock): the server's time in ms; only tests pass a clock of their own, all others ''.
local function now_ms(clock)
  if clock ~= '' then return tonumber(clock) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- now_us(clock): the same in microseconds.
local function now_us(clock)
  if clock ~= '' then return tonumber(clock) * 1000 end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
