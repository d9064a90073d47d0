-- probe: try each command of a worker's scripts, on a key that is there only meanwhile. A right that
-- is missing must come to light before a job runs: what cannot be settled would be run again.
-- Moves: none
-- KEYS: 1 a key that nothing else uses, whose name is also the channel to try
-- ARGV: none
-- Returns: pairs command, error of those that the server refused; none when a worker can do its work
-- Cost: O(1); about 60 us
local key = KEYS[1]
local refused = {}

local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) ~= 'table' or not reply.err then return true end
  refused[#refused + 1] = command
  refused[#refused + 1] = reply.err
end

redis.call('XACK', key, 'workers', '0-1')
-- What could not be deleted must not be made.
if not try('DEL', key) then return refused end

for _, words in ipairs({
  {'XGROUP', 'CREATE', key, 'workers', '0', 'MKSTREAM'},
  {'XADD', key, '1-1', 'kind', 'probe'},
  {'XREADGROUP', 'GROUP', 'workers', 'probe', 'COUNT', 1, 'STREAMS', key, '>'},
  {'XPENDING', key, 'workers', '-', '+', 1},
  {'XCLAIM', key, 'workers', 'probe', 0, '1-1', 'JUSTID'},
  {'XRANGE', key, '-', '+', 'COUNT', 1},
  {'XLEN', key},
  {'XINFO', 'GROUPS', key},
  {'XINFO', 'CONSUMERS', key, 'workers'},
  {'XDEL', key, '1-1'},
  {'XGROUP', 'DELCONSUMER', key, 'workers', 'probe'},
  {'DEL', key},
  {'HSET', key, 'a', 1},
  {'HSETNX', key, 'b', 1},
  {'HINCRBY', key, 'a', 1},
  {'HGET', key, 'a'},
  {'HEXISTS', key, 'a'},
  {'HGETALL', key},
  {'HKEYS', key},
  {'HLEN', key},
  {'HDEL', key, 'a', 'b'},
  {'SADD', key, 'a'},
  {'SRANDMEMBER', key, 1},
  {'SREM', key, 'a'},
  {'ZADD', key, 1, 'a'},
  {'ZRANGE', key, 0, 0},
  {'ZRANGEBYSCORE', key, 0, 1},
  {'ZCARD', key},
  {'ZSCORE', key, 'a'},
  {'ZLEXCOUNT', key, '-', '+'},
  {'ZRANGEBYLEX', key, '-', '+'},
  {'ZRANDMEMBER', key, 1},
  {'ZREM', key, 'a'},
  {'LPUSH', key, 'a'},
  {'LLEN', key},
  {'DEL', key},
  {'SET', key, 'a'},
  {'GET', key},
  {'EXISTS', key},
  {'PEXPIRE', key, 1000},
  {'PTTL', key},
  {'DEL', key},
  {'TIME'},
  {'PUBLISH', key, ''},
}) do try(unpack(words)) end
return refused
