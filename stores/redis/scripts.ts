// The writes, each one atomic step on the server. Every script first compares its deadline with the server's clock: a
// client may queue a command, or send it again after a cut connection, long after its caller has given up. Every key that
// a script writes is declared in KEYS: while a slot migrates, a script that writes others fails half-way.
//
// A full Redis refuses the first write of a script if it adds something, and no later one. So a script that creates
// begins with that, and has then done nothing; a script that ends begins with a removal, and is then not refused.
import { createHash } from 'node:crypto'
import { CLOCK_TOLERANCE } from '../../src/contract/store.ts'

/** How many members of the index each write looks up, so that those without a session stay a minority. */
const SAMPLE = 4

const PRELUDE = `
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
if clock > tonumber(ARGV[1]) then return {'late', clock} end
local now = tonumber(ARGV[2])

-- nil also for a key of another type, which reads as absent. Any other error (a missing right) ends the script.
local function get(key)
  local reply = redis.pcall('GET', key)
  if type(reply) == 'table' and not string.find(reply.err, 'WRONGTYPE') then return redis.call('GET', key) end
  return type(reply) == 'string' and reply or nil
end

-- The header line as a table, or nil for anything else: a forward, a tombstone, a value that another program wrote.
local function parse(value)
  local r, tail, data = {}, nil, nil
  r.kind, r.version, r.writeId, r.created, r.seen, r.expires, r.absolute, r.kept, tail, r.passwordVersion, r.parent, r.userId, data =
    string.match(value or '',
      '^([sr]) (%d+) ([%w_-]+) (%d+) (%d+) (%d+) (%d+) (%d+) ()(%S+) (%S+) (%S+) [^ \\n]*\\n()')
  if not r.kind then return nil end
  for _, f in ipairs({'version', 'created', 'seen', 'expires', 'absolute', 'kept'}) do r[f] = tonumber(r[f]) end
  r.identity, r.data = string.sub(value, tail, data - 1), string.sub(value, data)
  return r
end

-- %.0f: tostring would write large numbers as 1.7e+12.
local function whole(number) return string.format('%.0f', number) end

-- The inverse of parse.
local function build(r)
  return table.concat({r.kind, whole(r.version), r.writeId, whole(r.created), whole(r.seen), whole(r.expires),
    whole(r.absolute), whole(r.kept), r.identity}, ' ') .. r.data
end

-- Stores a value. Its TTL never becomes shorter: a node whose clock is ahead must not end the session of another node. It
-- ends at the latest at an instant of the server's clock: wrong clocks of many nodes must not add up, or a record would
-- outlive the index.
local function keep(key, value, life, latest)
  local px = math.min(math.max(redis.call('PTTL', key), life), latest and latest - clock or math.huge)
  redis.call('SET', key, value, 'PX', whole(math.max(px, 1)))
end

local function member(key) return string.sub(key, -43) end
local function movedTo(value) return string.match(value or '', '^f (%S+) ') end
-- The user's minimum password version and until when it holds: 0 if none holds.
local function minimum(key)
  local version, holds = string.match(get(key) or '', '^(%d+) (%d+)$')
  if not version or tonumber(holds) <= now then return 0, 0 end
  return tonumber(version), tonumber(holds)
end
-- A key of another type has the name of the index: no session is found by it, so it gives way.
local function clear(index)
  local kind = redis.call('TYPE', index).ok
  if kind ~= 'zset' and kind ~= 'none' then redis.call('DEL', index) end
end
`

export type Script = { readonly sha: string; readonly source: string }
const script = (body: string): Script => {
  const source = PRELUDE + body
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/**
 * Makes a record live, in place of another one of this slot if there is one.
 *
 * KEYS: new, old, index, minimum password version, parent; one that is not needed is missing or the first again. ARGV after
 * deadline and now: value, life ms, reach ms (longer than any later life), parent (none, own, elsewhere), version of the old
 * record (empty: none), forward (empty: none), its life ms.
 */
export const PUT = script(`
local new, old, index, least, parent = unpack(KEYS, 1, 5)
local added, life, reach = parse(ARGV[3]), ARGV[4], tonumber(ARGV[5])
added.kept = clock + reach
local oldVersion, forward = tonumber(ARGV[7]), ARGV[8]

-- Before all questions: a client sends a command again after a cut connection.
local stored = parse(get(new))
if stored and stored.writeId == added.writeId and stored.userId == added.userId and stored.created == added.created then
  return {'created', clock}
end
local before
if oldVersion then
  before = parse(get(old))
  if not before or before.expires <= now then return {'gone', clock} end
  if before.version ~= oldVersion then return {'conflict', clock} end
end
if redis.call('EXISTS', new) == 1 then return {'collision', clock} end

local owned = added.userId ~= '-'
if owned then
  clear(index)
  if minimum(least) > (tonumber(added.passwordVersion) or 0) then return {'stale-login', clock} end
  if ARGV[6] ~= 'none' and not (before and before.parent == added.parent) then
    local source = ARGV[6] == 'own' and parse(get(parent))
    if not source or source.expires <= now then return {'orphan', clock} end
  end
end

local sample = owned and redis.call('ZRANDMEMBER', index, ${SAMPLE}) or {}
if owned then
  -- The index before the record: a member without a record does no harm, a record without a member is never found.
  redis.call('ZADD', index, whole(clock + reach), member(new))
  redis.call('PEXPIRE', index, whole(math.max(redis.call('PTTL', index), reach + ${CLOCK_TOLERANCE})))
end
if before then
  -- A missing right to remove shows here: later it would leave the new record beside the old one.
  redis.call('SET', new, '', 'PX', 1)
  redis.call('DEL', new)
  if owned then redis.call('ZREM', index, '') end
end
redis.call('SET', new, build(added), 'PX', life)
if before then
  if forward ~= '' then keep(old, forward, tonumber(ARGV[9])) else redis.call('DEL', old) end
  if owned then redis.call('ZREM', index, member(old)) end
end
-- These keys are not declared, and only looked at. While their slot moves, a question about one that is here (the new
-- one) and one that is not is refused, so that what has moved is not taken for gone.
local keys = string.sub(new, 1, -44)
for _, m in ipairs(sample) do
  if m ~= member(new) and redis.pcall('EXISTS', new, keys .. m) == 1 then redis.call('ZREM', index, m) end
end
return {'created', clock}
`)

/**
 * Writes to a live record: data if it has this version, or without a version only that it was used.
 *
 * KEYS: record. ARGV: seenAt, expiresAt, margin ms, version (empty: a touch), write ID, data.
 */
export const WRITE = script(`
local r = parse(get(KEYS[1]))
local version = tonumber(ARGV[6])
if not r or r.expires <= now then return {'gone', clock} end
if version then
  if r.version == version + 1 and r.writeId == ARGV[7] then return {'updated', clock} end
  if r.version ~= version then return {'conflict', clock} end
  r.version, r.writeId, r.data = version + 1, ARGV[7], ARGV[8]
end
local seen, expires = math.max(r.seen, tonumber(ARGV[3])), math.max(r.expires, math.min(tonumber(ARGV[4]), r.absolute))
if version or seen ~= r.seen or expires ~= r.expires then
  r.seen, r.expires = seen, expires
  keep(KEYS[1], build(r), expires - now + tonumber(ARGV[5]), r.kept)
end
return {version and 'updated' or 'touched', clock}
`)

/**
 * Ends a record, and removes the forwards that led to it; answers `moved` and the next key if a forward is there.
 *
 * KEYS: record, then the forwards that the caller has followed.
 */
export const DELETE = script(`
local value = get(KEYS[1])
if movedTo(value) then return {'moved', clock, movedTo(value)} end
-- The tombstone of a login stays, so that the login repeated is recognised.
if not value or string.sub(value, 1, 2) ~= 'x ' then redis.call('DEL', KEYS[1]) end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
return {parse(value) and 'ended' or 'absent', clock}
`)

/** Ends a record for a login on another slot, and leaves its tombstone. KEYS: record. ARGV: version, write ID, life of the tombstone. */
export const LEAVE = script(`
local value = get(KEYS[1])
if value == 'x ' .. ARGV[4] then return {'ended', clock} end
local r = parse(value)
if not r or r.expires <= now then return {'gone', clock} end
if r.version ~= tonumber(ARGV[3]) then return {'conflict', clock} end
redis.call('SET', KEYS[1], 'x ' .. ARGV[4], 'PX', ARGV[5])
return {'ended', clock}
`)

/** Removes the new record of a login that could not end the old one. KEYS: record, index (if any). ARGV: write ID. */
export const UNDO = script(`
local r = parse(get(KEYS[1]))
if r and r.writeId == ARGV[3] then
  redis.call('DEL', KEYS[1])
  if KEYS[2] then redis.call('ZREM', KEYS[2], member(KEYS[1])) end
end
return {'undone', clock}
`)

/**
 * Ends a user's records that it is given; sets the minimum password version if none is left.
 *
 * KEYS: index, minimum password version, the excepted one (if any), then members of the index. ARGV: user ID as in a
 * header, how many keys are before the members, how many others to name, password version (empty: none), until when
 * it holds, margin ms. Answers `moved` and the next key if the excepted one was replaced; else `ended`, or `again` if there
 * are others: how many lived, and the others.
 */
export const DELETE_USER = script(`
local index, least, first, most = KEYS[1], KEYS[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local excepted = first == 3 and KEYS[3]
local next = excepted and movedTo(get(excepted))
if next then return {'moved', clock, next} end
local spared = excepted and member(excepted)
clear(index)
-- A removal first, also if nothing is left: a full Redis then lets the minimum be set.
redis.call('ZREM', index, '')
local count = 0
for i = first + 1, #KEYS do
  local m = member(KEYS[i])
  if m ~= spared then
    local value = get(KEYS[i])
    local r = parse(value)
    if r and r.kind == 's' and r.expires > now and r.userId == ARGV[3] then count = count + 1 end
    if r and r.userId == ARGV[3] or not r and not string.find(value or '', '^[fx] ') then redis.call('DEL', KEYS[i]) end
    redis.call('ZREM', index, m)
  end
end
local answer = {'again', clock, count}
for _, m in ipairs(redis.call('ZRANGE', index, 0, most)) do
  if m ~= spared and #answer < 3 + most then answer[#answer + 1] = m end
end
if #answer > 3 then return answer end
if ARGV[6] ~= '' then
  local version, holds = minimum(least)
  version, holds = math.max(version, tonumber(ARGV[6])), math.max(holds, tonumber(ARGV[7]))
  keep(least, whole(version) .. ' ' .. whole(holds), holds - now + tonumber(ARGV[8]))
end
answer[1] = 'ended'
return answer
`)

/**
 * Removes a value that no record can be, if it is (still) there: `discarded`, `absent` or `other`. A client changes bytes
 * that are not UTF-8, so only ASCII is compared. KEYS: record. ARGV: the value.
 */
export const DISCARD = script(`
local function ascii(value) return (string.gsub(value, '[\\128-\\255]+', '')) end
local value = get(KEYS[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return {'absent', clock} end
if value and ascii(value) ~= ascii(ARGV[3]) then return {'other', clock} end
redis.pcall('DEL', KEYS[1])
return {'discarded', clock}
`)
