-- answered(producer, number, token): the reply to give at once, or nil when this batch is new.
-- A batch that was taken already gets its stored reply (written again, so that a WAIT that follows
-- counts); a late copy from a dead connection must do nothing.
local function answered(producer, number, token)
  local last = redis.call('GET', producer)
  if not last then return nil end
  local last_number, last_token, reply = string.match(last, '^(%d+) (%x+) (.*)$')
  if tonumber(last_number) > tonumber(number) then return 'STALEBATCH' end
  if tonumber(last_number) < tonumber(number) then return nil end
  if last_token ~= token then return 'TWOPRODUCERS' end
  redis.call('SET', producer, last, 'PX', 600000)
  return reply
end

-- remember(producer, number, token, reply): keep the reply for a copy of this batch, and return it.
local function remember(producer, number, token, reply)
  redis.call('SET', producer, number .. ' ' .. token .. ' ' .. reply, 'PX', 600000)
  return reply
end
