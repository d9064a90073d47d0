-- While a queue is paused its group stands behind every id that can be, so a server delivers nothing
-- fresh, to workers of whatever version. The field `paused` of its config says where the group stood.
local NOTHING_AFTER = '18446744073709551615-18446744073709551615'

local function paused(config)
  return redis.call('HGET', config, 'paused')
end

-- make_group(stream, config): make the group where there is none; the server's error or nil, and
-- whether there was none. It begins at 0, never at $: what waits already must be seen, if not before
-- the queue is resumed.
local function make_group(stream, config)
  local made = redis.pcall('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
  if made.err then return not string.find(tostring(made.err), 'BUSYGROUP', 1, true) and made or nil, false end
  if paused(config) then
    redis.call('HSET', config, 'paused', '0-0')
    redis.call('XGROUP', 'SETID', stream, 'workers', NOTHING_AFTER)
  end
  return nil, true
end
