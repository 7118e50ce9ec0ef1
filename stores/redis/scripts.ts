// The writes, each one atomic step on the server. Every script begins with its deadline on the server's clock: a client
// may queue a command, or send it again after a cut connection, long after its caller has given up, and a paused server
// runs what waits in its socket. Every key that a script touches is declared in KEYS, because a script that reaches
// further fails half-way while a slot migrates.
import { createHash } from 'node:crypto'

export interface Script {
  readonly sha: string
  readonly source: string
}

const PRELUDE = `
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
if clock > tonumber(ARGV[1]) then return {'late', clock} end
local now = tonumber(ARGV[2])

local function get(key)
  local value = redis.pcall('GET', key)
  return type(value) == 'string' and value or nil
end

local function parse(value)
  local r = {}
  local head, tail
  if not value then return nil end
  r.kind, r.version, r.writeId, r.created, r.seen, r.expires, r.absolute, head =
    string.match(value, '^([sr]) (%d+) ([%w_-]+) (%d+) ([+-]%d+) ([+-]%d+) ([+-]%d+) ()')
  if not r.kind then return nil end
  r.parent, r.userId, tail = string.match(value, '^%S+ (%S+) (%S+) [^ \\n]*()\\n', head)
  if not r.parent then return nil end
  r.version = tonumber(r.version)
  r.created = tonumber(r.created)
  r.seen = r.created + tonumber(r.seen)
  r.expires = r.created + tonumber(r.expires)
  r.absolute = r.created + tonumber(r.absolute)
  r.rest = string.sub(value, head, tail)
  r.data = string.sub(value, tail + 1)
  return r
end

local function build(r)
  return string.format('%s %.0f %s %.0f %+.0f %+.0f %+.0f ', r.kind, r.version, r.writeId, r.created,
    r.seen - r.created, r.expires - r.created, r.absolute - r.created) .. r.rest .. r.data
end

local function keep(key, value, life)
  local px = math.max(redis.call('PTTL', key), life, 1)
  redis.call('SET', key, value, 'PX', string.format('%.0f', px))
end

local function member(key) return string.sub(key, -43) end
`

const script = (body: string): Script => {
  const source = PRELUDE + body
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/**
 * Makes a record live, in place of another one where there is one.
 *
 * KEYS: new, old, index, floor, parent, then members of the index. A key that is not needed is not given, or given as
 * the first. ARGV after deadline and now: value, write ID, life ms, password version, index life ms (empty: no index),
 * parent key (empty: none), how to find it (own, elsewhere), limit (0: none), what to do at it (refuse, end-oldest),
 * old version (empty: no old record), forward (empty: none), its life ms.
 */
export const PUT = script(`
local new, old, index, floor, parent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local value, writeId, life, passwordVersion, indexLife = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local parentKey, parentPlace, max, onLimit = ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[11]
local oldVersion, forward, forwardLife = ARGV[12], ARGV[13], tonumber(ARGV[14])

local stored = parse(get(new))
if stored and stored.writeId == writeId then return {'created', clock} end
local before
if oldVersion ~= '' then
  before = parse(get(old))
  if not before or before.expires <= now then return {'gone', clock} end
  if before.version ~= tonumber(oldVersion) then return {'conflict', clock} end
end
if redis.call('EXISTS', new) == 1 then return {'collision', clock} end

local owned = indexLife ~= ''
if owned then
  local version, holds = string.match(get(floor) or '', '^(%d+) (%d+)$')
  if version and tonumber(holds) > now and tonumber(version) > passwordVersion then return {'stale-login', clock} end
  if parentKey ~= '' and not (before and before.parent == parentKey) then
    local born = parentPlace == 'own' and parse(get(parent))
    if not born or born.expires <= now then return {'orphan', clock} end
  end
end

local dead, ended = {}, {}
if owned and max > 0 then
  local members = redis.pcall('ZRANGE', index, 0, -1)
  local declared, undeclared, others = {}, 0, 0
  for i = 6, #KEYS do declared[member(KEYS[i])] = KEYS[i] end
  local replaced = before and member(old)
  for _, m in ipairs(members) do
    if m ~= replaced then
      others = others + 1
      if not declared[m] then undeclared = undeclared + 1 end
    end
  end
  if others >= max then
    if undeclared > 0 then
      local again = {'again', clock}
      for _, m in ipairs(members) do if m ~= replaced then again[#again + 1] = m end end
      return again
    end
    local living = {}
    for _, m in ipairs(members) do
      if m ~= replaced then
        local r = parse(get(declared[m]))
        if not r or r.expires <= now then
          if redis.call('EXISTS', declared[m]) == 0 then dead[#dead + 1] = m end
        elseif r.kind == 's' then
          living[#living + 1] = {member = m, key = declared[m], created = r.created}
        end
      end
    end
    if #living >= max then
      if onLimit == 'refuse' then return {'limit', clock} end
      table.sort(living, function(a, b)
        if a.created ~= b.created then return a.created < b.created end
        return a.member < b.member
      end)
      for i = 1, #living - max + 1 do ended[i] = living[i] end
    end
  end
end

-- The record first: a full Redis refuses the first write of a script, and then nothing has happened.
keep(new, value, life)
if before then
  if forward ~= '' then keep(old, forward, forwardLife) else redis.call('DEL', old) end
end
local answer = {'created', clock}
if owned then
  local score = string.format('%.0f', clock + tonumber(indexLife))
  local added = redis.pcall('ZADD', index, score, member(new))
  if type(added) == 'table' then
    redis.call('DEL', index)
    redis.call('ZADD', index, score, member(new))
  end
  if before then redis.call('ZREM', index, member(old)) end
  for _, e in ipairs(ended) do
    redis.call('DEL', e.key)
    redis.call('ZREM', index, e.member)
    answer[#answer + 1] = e.member
  end
  for _, m in ipairs(dead) do redis.call('ZREM', index, m) end
  redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('(%.0f', clock))
  redis.call('PEXPIRE', index, string.format('%.0f', math.max(redis.call('PTTL', index), tonumber(indexLife), 1)))
end
return answer
`)

/** KEYS: record. ARGV: version, write ID, seenAt, expiresAt, margin ms, data. */
export const UPDATE = script(`
local r = parse(get(KEYS[1]))
if not r or r.expires <= now then return {'gone', clock} end
local version = tonumber(ARGV[3])
if r.version == version + 1 and r.writeId == ARGV[4] then return {'updated', clock} end
if r.version ~= version then return {'conflict', clock} end
r.version = version + 1
r.writeId = ARGV[4]
r.seen = math.max(r.seen, tonumber(ARGV[5]))
r.expires = math.max(r.expires, math.min(tonumber(ARGV[6]), r.absolute))
r.data = ARGV[8]
keep(KEYS[1], build(r), r.expires - now + tonumber(ARGV[7]))
return {'updated', clock}
`)

/** KEYS: record. ARGV: seenAt, expiresAt, margin ms. */
export const TOUCH = script(`
local r = parse(get(KEYS[1]))
if not r or r.expires <= now then return {'gone', clock} end
local seen = math.max(r.seen, tonumber(ARGV[3]))
local expires = math.max(r.expires, math.min(tonumber(ARGV[4]), r.absolute))
if seen ~= r.seen or expires ~= r.expires then
  r.seen = seen
  r.expires = expires
  keep(KEYS[1], build(r), expires - now + tonumber(ARGV[5]))
end
return {'touched', clock}
`)

/** KEYS: record, then what forwards lead to, as far as it is known. Answers `again` and the next one where it is not. */
export const DELETE = script(`
for i = 1, #KEYS do
  local value = get(KEYS[i])
  local movedTo = value and string.match(value, '^f (%S+) ')
  if not movedTo then
    local ended = parse(value) and 'ended' or 'absent'
    -- The mark of a replacement stays, so that the replacement repeated is recognised.
    if not value or string.sub(value, 1, 2) ~= 'x ' then redis.call('DEL', KEYS[i]) end
    for j = 1, i - 1 do redis.call('DEL', KEYS[j]) end
    return {ended, clock}
  end
  if not KEYS[i + 1] or member(KEYS[i + 1]) ~= string.sub(movedTo, 4) then return {'again', clock, movedTo} end
end
`)

/**
 * Ends a user's records and raises the floor.
 *
 * KEYS: index, floor, then members of the index. ARGV: user ID as in a header, member that survives (empty: none),
 * how far (part: only these members; all: or `again` with what is not declared), password version (empty: no floor),
 * floor until, margin ms.
 */
export const DELETE_USER = script(`
local index, floor = KEYS[1], KEYS[2]
local userId, except, extent, passwordVersion = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if extent == 'all' then
  local declared = {}
  for i = 3, #KEYS do declared[member(KEYS[i])] = true end
  local members = redis.pcall('ZRANGE', index, 0, -1)
  local again
  for _, m in ipairs(members) do
    if m ~= except and not declared[m] then
      again = again or {'again', clock}
      again[#again + 1] = m
    end
  end
  if again then
    for i = 3, #KEYS do again[#again + 1] = member(KEYS[i]) end
    return again
  end
end
local count = 0
for i = 3, #KEYS do
  local m = member(KEYS[i])
  if m ~= except then
    local value = get(KEYS[i])
    local r = parse(value)
    if r and r.userId == userId then
      if r.kind == 's' and r.expires > now then count = count + 1 end
      redis.call('DEL', KEYS[i])
    elseif not r and not (value and string.find(value, '^[fx] ')) then
      redis.call('DEL', KEYS[i])
    end
    redis.pcall('ZREM', index, m)
  end
end
if extent == 'all' then
  -- Also where nothing is left: a full Redis lets a script write on after its first deletion, and so raises the floor.
  if except == '' or not tonumber(redis.pcall('ZSCORE', index, except) or nil) then redis.call('DEL', index)
  else redis.call('ZREM', index, '') end
  if passwordVersion ~= '' then
    local version, holds = string.match(get(floor) or '', '^(%d+) (%d+)$')
    version = math.max(tonumber(version) or 0, tonumber(passwordVersion))
    holds = math.max(tonumber(holds) or 0, tonumber(ARGV[7]))
    keep(floor, string.format('%.0f %.0f', version, holds), holds - now + tonumber(ARGV[8]))
  end
end
return {'ended', clock, count}
`)

/** Ends a record that a new one on another shard replaces. KEYS: record. ARGV: version, write ID, life ms of the mark. */
export const END = script(`
local value = get(KEYS[1])
if value == 'x ' .. ARGV[4] then return {'ended', clock} end
local r = parse(value)
if not r or r.expires <= now then return {'gone', clock} end
if r.version ~= tonumber(ARGV[3]) then return {'conflict', clock} end
redis.call('SET', KEYS[1], 'x ' .. ARGV[4], 'PX', ARGV[5])
return {'ended', clock}
`)

/** Takes back a record that this write made. KEYS: record. ARGV: write ID. */
export const UNDO = script(`
local r = parse(get(KEYS[1]))
if r and r.writeId == ARGV[3] then redis.call('DEL', KEYS[1]) end
return {'undone', clock}
`)

/** Removes a value that no record can be, unless another has taken its place. KEYS: record. ARGV: the value. */
export const DISCARD = script(`
local value = get(KEYS[1])
-- What is not UTF-8 is not what a client made of it; the rest is compared.
local function ascii(text) return (string.gsub(text, '[\\128-\\255]+', '')) end
if not value or ascii(value) == ascii(ARGV[3]) then redis.call('DEL', KEYS[1]) end
return {'discarded', clock}
`)
