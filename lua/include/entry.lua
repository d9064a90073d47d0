-- read(stream, id): the fields of an entry as a table, or nil when it is gone.
local function read(stream, id)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  if not entry then return nil end
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  return fields, entry[2]
end

-- pending(stream, id): the row of XPENDING that says who holds an entry, or nil; without a group
-- nobody does.
local function pending(stream, id)
  return redis.pcall('XPENDING', stream, 'workers', id, id, 1)[1]
end

-- runs(row): whether a worker holds the entry: not one that was given back, or waits in a lane.
local function runs(row)
  return row and row[2] ~= 'released' and row[2] ~= 'parked'
end

-- named(meta): the job id that a meta names, or nil. Only ever read, never written back.
local function named(meta)
  local ok, object = pcall(cjson.decode, meta or '')
  return ok and type(object) == 'table' and type(object.id) == 'string' and object.id or nil
end

-- locate(stream, moved, job): entry id and fields of a job that is in the stream, or nil. An entry
-- that stands at the job's id but names another job is not it.
local function locate(stream, moved, job)
  local id = redis.call('HGET', moved, job) or job
  if string.sub(id, 1, 1) == 'd' then return nil end
  local fields = read(stream, id)
  if fields and (named(fields.meta) or id) == job then return id, fields end
  return nil
end
