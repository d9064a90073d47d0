-- pack(kind, body, meta) and unpack_envelope(text): how a job lies in the hash of bodies, and the newest
-- arguments in that of latest ones.
local function pack(kind, body, meta)
  return #kind .. ':' .. #body .. ':' .. kind .. body .. meta
end

-- with_id(meta, id): a meta that names the job's id, set into the text as the first member: what is in
-- meta stays byte by byte.
local function with_id(meta, id)
  local rest = (meta == '' or meta == '{}') and '}' or ',' .. string.sub(meta, 2)
  return '{"id":"' .. id .. '"' .. rest
end

local function unpack_envelope(text)
  local kind_size, body_size, at = string.match(text, '^(%d+):(%d+):()')
  -- Not ours: as a body it goes dead with its bytes; an error would stop every later promotion.
  if not at then return '', text, '' end
  local body_at = at + tonumber(kind_size)
  local meta_at = body_at + tonumber(body_size)
  return string.sub(text, at, body_at - 1), string.sub(text, body_at, meta_at - 1), string.sub(text, meta_at)
end
