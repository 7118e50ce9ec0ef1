// The writes, each one atomic step on the server. Every script first compares its deadline with the server's clock: a
// client may queue a command, or send it again after a cut connection, long after its caller has given up, and a paused
// server runs the commands that wait in its socket. Every key that a script writes is declared in KEYS: while a slot
// migrates, a script that writes others fails half-way.
import { createHash } from 'node:crypto'
import { CLOCK_TOLERANCE } from '../../src/contract/store.ts'

export interface Script {
  readonly sha: string
  readonly source: string
}

const PRELUDE = `
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
if clock > tonumber(ARGV[1]) then return {'late', clock} end
local now = tonumber(ARGV[2])

-- Runs a command; answers nil where the key is of another type, which reads as absent. Any other error (a missing right)
-- says nothing of the key, and ends the script: 'call' raises it in the form of this version of the server.
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, '^WRONGTYPE') then return nil end
  return redis.call(...)
end

local function get(key) return try('GET', key) or nil end

-- The header line as a table, or nil for anything else: a forward, a mark, a value that another program wrote.
local unit = {[''] = 1, s = 1000, m = 60000, h = 3600000}
local function parse(value)
  local r = {}
  local seen, seenIn, expires, expiresIn, absolute, absoluteIn, kept, keptIn, head, tail
  if not value then return nil end
  r.kind, r.version, r.writeId, r.created, seen, seenIn, expires, expiresIn, absolute, absoluteIn, kept, keptIn, head =
    string.match(value, '^([sr]) (%d+) ([%w_-]+) (%d+) (-?%d+)([smh]?) (-?%d+)([smh]?) (-?%d+)([smh]?) (-?%d+)([smh]?) ()')
  if not r.kind then return nil end
  r.passwordVersion, r.parent, r.userId, tail = string.match(value, '^(%S+) (%S+) (%S+) [^ \\n]*()\\n', head)
  if not r.parent then return nil end
  r.version = tonumber(r.version)
  r.created = tonumber(r.created)
  r.seen = r.created + seen * unit[seenIn]
  r.expires = r.seen + expires * unit[expiresIn]
  r.absolute = r.created + absolute * unit[absoluteIn]
  r.kept = r.absolute + kept * unit[keptIn]
  r.rest = string.sub(value, head, tail)
  r.data = string.sub(value, tail + 1)
  return r
end

-- %.0f: tostring would write large numbers as 1.7e+12.
local function span(ms)
  if ms == 0 then return '0' end
  for _, u in ipairs({'h', 'm', 's'}) do
    if ms % unit[u] == 0 then return string.format('%.0f', ms / unit[u]) .. u end
  end
  return string.format('%.0f', ms)
end

-- The inverse of parse.
local function build(r)
  return string.format('%s %.0f %s %.0f %s %s %s %s ', r.kind, r.version, r.writeId, r.created, span(r.seen - r.created),
    span(r.expires - r.seen), span(r.absolute - r.created), span(r.kept - r.absolute)) .. r.rest .. r.data
end

-- A record that waits for its second step (see PUT): the attempt that wrote it, and the record.
local function pending(value)
  local attempt, record = string.match(value or '', '^p (%S+) (.*)$')
  return attempt, parse(record)
end

-- Whether a record is what this very write stored: its repetition must not be answered 'collision'.
local function same(r, other)
  return r.writeId == other.writeId and r.userId == other.userId and r.created == other.created
end

-- Stores a value. Its TTL never becomes shorter: a node whose clock is ahead must not end the session of another node.
-- It ends at the latest at an instant of the server's clock: wrong clocks of many nodes must not add up.
local function keep(key, value, life, latest)
  local px = math.max(redis.call('PTTL', key), life)
  if latest then px = math.min(px, latest - clock) end
  redis.call('SET', key, value, 'PX', string.format('%.0f', math.max(px, 1)))
end

local function member(key) return string.sub(key, -43) end
`

const script = (body: string): Script => {
  const source = PRELUDE + body
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** Members of an index that a script reads at once at most. */
export const PAGE = 16_384
/** Sessions of one user that a limit decides about in one script; where there are more, most are ended before. */
export const WINDOW = 1000
// How many members of the index each write looks up. So at most a third as many members without a record stay as there
// are members with one.
const PRUNED = 4
// Bytes of a value in which its header ends, and most of them in which a damaged one does.
const HEADER = 16_384
// How much longer than its own deadline a record waits for its second step, in ms.
const WAITING = 1000

/**
 * Makes a record live, in place of another one where there is one. Where that one is on another slot, in two steps:
 * `prepare` decides and keeps the place, `confirm` makes live what was prepared by this attempt.
 *
 * KEYS: new, old, index, floor, parent, then members of the index. A key that is not needed is not given, or given as
 * the first. ARGV after deadline and now: value, life ms, reach ms (longer than any life that a later write may give it),
 * parent key (empty: none), how to find it (own, elsewhere), limit (0: none), what to do at it (refuse, end-oldest),
 * old version (empty: no old record), forward (empty: none), its life ms, step (empty: the only one), attempt.
 */
export const PUT = script(`
local new, old, index, floor, parent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local added, life, reach = parse(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local parentKey, parentPlace, max, onLimit = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9]
local oldVersion, forward, forwardLife, step, attempt = ARGV[10], ARGV[11], tonumber(ARGV[12]), ARGV[13], ARGV[14]

-- Before all questions: a client sends a command again after a cut connection.
local found = get(new)
local stored = parse(found)
if stored and same(stored, added) then return {'created', clock} end
local before
if oldVersion ~= '' then
  before = parse(get(old))
  if not before or before.expires <= now then return {'gone', clock} end
  if before.version ~= tonumber(oldVersion) then return {'conflict', clock} end
end
local holder, held = pending(found)
if step == 'confirm' then
  if holder ~= attempt then return {'gone', clock} end
elseif step == 'prepare' and held and same(held, added) then
  attempt = holder
elseif redis.call('EXISTS', new) == 1 then
  return {'collision', clock}
end

local owned = added.userId ~= '-'
-- A refused confirmation takes the prepared record with it: nothing would ever make that live.
local function refuse(outcome)
  if step == 'confirm' then
    redis.call('DEL', new)
    if owned then try('ZREM', index, member(new)) end
  end
  return {outcome, clock}
end
if owned then
  local version, holds = string.match(get(floor) or '', '^(%d+) (%d+)$')
  if version and tonumber(holds) > now and tonumber(version) > (tonumber(added.passwordVersion) or 0) then
    return refuse('stale-login')
  end
  if parentKey ~= '' and not (before and before.parent == parentKey) then
    local source = parentPlace == 'own' and parse(get(parent))
    if not source or source.expires <= now then return refuse('orphan') end
  end
end

-- What is prepared counts at a refusing limit, so that a confirmation is not refused after the old session has ended;
-- nothing ends for it until it is confirmed.
local dead, ended = {}, {}
if owned and max > 0 and (step == '' or (step == 'prepare') == (onLimit == 'refuse')) then
  local own, replaced = member(new), before and member(old) or nil
  local others = tonumber(try('ZCARD', index)) or 0
  for _, m in ipairs({own, replaced}) do
    if try('ZSCORE', index, m) then others = others - 1 end
  end
  if others >= max then
    local members = redis.call('ZRANGE', index, 0, math.max(#KEYS - 5, ${WINDOW}) + 1)
    local declared, again, undeclared = {}, {'again', clock, others}, false
    for i = 6, #KEYS do declared[member(KEYS[i])] = KEYS[i] end
    for _, m in ipairs(members) do
      if m ~= replaced and m ~= own then
        again[#again + 1] = m
        undeclared = undeclared or not declared[m]
      end
    end
    -- Only what is declared may be written below: the caller sends the call again with these members.
    if undeclared then return again end
    local living, waiting = {}, 0
    for i = 4, #again do
      local m = again[i]
      local value = get(declared[m])
      local r = parse(value)
      if r and r.expires > now then
        if r.kind == 's' and r.userId == added.userId then
          living[#living + 1] = {member = m, key = declared[m], created = r.created}
        end
      elseif pending(value) then
        if onLimit == 'refuse' then waiting = waiting + 1 end
      elseif redis.call('EXISTS', declared[m]) == 0 then
        dead[#dead + 1] = m
      end
    end
    if #living + waiting >= max then
      if onLimit == 'refuse' then return {'limit', clock} end
      table.sort(living, function(a, b)
        if a.created ~= b.created then return a.created < b.created end
        return a.member < b.member
      end)
      for i = 1, #living - max + 1 do ended[i] = living[i] end
    end
  end
end

local sample = owned and try('ZRANDMEMBER', index, ${PRUNED}) or {}
-- The index before the record: a member without a record ends by itself, a record without a member is never found. A full
-- Redis refuses the first write of a script, and then nothing has happened.
if owned then
  local score = string.format('%.0f', clock + reach)
  -- A key of another type stands where the index belongs: no session is found by it, so it gives way.
  if not try('ZADD', index, score, member(new)) then
    redis.call('DEL', index)
    redis.call('ZADD', index, score, member(new))
  end
  -- No record is kept longer than its reach, whatever the clock of who touches it; the index is, also where the keys of
  -- a slot move one by one.
  local px = math.max(redis.call('PTTL', index), reach + ${CLOCK_TOLERANCE})
  redis.call('PEXPIRE', index, string.format('%.0f', px))
  -- Where a right to remove is missing, the script ends here: repeated after it had stored the record, it would answer
  -- 'created' beside sessions that live on.
  if before or #ended > 0 then redis.call('ZREM', index, '') end
  if before and forward == '' or #ended > 0 then redis.call('DEL', new) end
elseif before and forward == '' then
  -- As above, after a write that a full Redis refuses.
  redis.call('SET', new, '', 'PX', 1)
  redis.call('DEL', new)
end
local answer = {'created', clock}
if step == 'prepare' then
  answer = {'prepared', clock, attempt}
  local px = string.format('%.0f', tonumber(ARGV[1]) - clock + ${WAITING})
  redis.call('SET', new, 'p ' .. attempt .. ' ' .. ARGV[3], 'PX', px)
else
  -- In whole minutes after the absolute expiry: they take less space.
  added.kept = added.absolute + math.ceil((clock + reach - added.absolute) / 60000) * 60000
  keep(new, build(added), life, added.kept)
end
if before then
  if forward ~= '' then keep(old, forward, forwardLife) else redis.call('DEL', old) end
end
for _, e in ipairs(ended) do
  redis.call('DEL', e.key)
  dead[#dead + 1] = e.member
  answer[#answer + 1] = e.member
end
if owned then
  if before then redis.call('ZREM', index, member(old)) end
  -- A member leaves the index where its record is gone. These keys are not declared; while their slot moves, a question
  -- about one that is here and one that is not is refused, so that what has only moved is not taken for gone.
  local keys = string.sub(new, 1, -44)
  for _, m in ipairs(sample) do
    if m ~= member(new) and redis.pcall('EXISTS', new, keys .. m) == 1 then dead[#dead + 1] = m end
  end
  for _, m in ipairs(dead) do redis.call('ZREM', index, m) end
end
return answer
`)

/** Writes data into a live record of this version. KEYS: record. ARGV: version, write ID, seenAt, expiresAt, margin ms, data. */
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
keep(KEYS[1], build(r), r.expires - now + tonumber(ARGV[7]), r.kept)
return {'updated', clock}
`)

/** Prolongs a live record. KEYS: record. ARGV: seenAt, expiresAt, margin ms. */
export const TOUCH = script(`
local r = parse(get(KEYS[1]))
if not r or r.expires <= now then return {'gone', clock} end
local seen = math.max(r.seen, tonumber(ARGV[3]))
local expires = math.max(r.expires, math.min(tonumber(ARGV[4]), r.absolute))
if seen ~= r.seen or expires ~= r.expires then
  r.seen = seen
  r.expires = expires
  keep(KEYS[1], build(r), expires - now + tonumber(ARGV[5]), r.kept)
end
return {'touched', clock}
`)

/**
 * Ends a record, or where a forward leads. KEYS: record, then what forwards lead to, as far as the caller knows it;
 * answers `again` and the next key where it does not.
 */
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
 * KEYS: index, floor, then the excepted one and what forwards lead to from there, as far as it is known, then members of
 * the index. ARGV: user ID as in a header, how many keys are excepted ones, how far (part: only these members; all: or
 * `again` with what is not declared), password version (empty: no floor), floor until, margin ms. Answers `follow` and
 * the next one where the excepted one was replaced.
 */
export const DELETE_USER = script(`
local index, floor = KEYS[1], KEYS[2]
local userId, first, extent, passwordVersion = ARGV[3], 3 + tonumber(ARGV[4]), ARGV[5], ARGV[6]
local except
for i = 3, first - 1 do
  except = member(KEYS[i])
  local movedTo = string.match(get(KEYS[i]) or '', '^f (%S+) ')
  if not movedTo then break end
  if i == first - 1 then return {'follow', clock, movedTo} end
end
if extent == 'all' then
  local declared = {}
  for i = first, #KEYS do declared[member(KEYS[i])] = true end
  local again
  for _, m in ipairs(try('ZRANGE', index, 0, ${PAGE - 1}) or {}) do
    if m ~= except and not declared[m] then
      again = again or {'again', clock}
      again[#again + 1] = m
    end
  end
  if again then
    for i = first, #KEYS do again[#again + 1] = member(KEYS[i]) end
    return again
  end
end
-- All that may be refused for a missing right is asked before the first deletion.
local spares = except and try('ZSCORE', index, except)
local version, holds = string.match(get(floor) or '', '^(%d+) (%d+)$')
if holds and tonumber(holds) <= now then version, holds = nil, nil end
try('ZREM', index, '')
local count = 0
for i = first, #KEYS do
  local m = member(KEYS[i])
  if m ~= except then
    local value = get(KEYS[i])
    local r = parse(value)
    local _, held = pending(value)
    if r and r.userId == userId then
      if r.kind == 's' and r.expires > now then count = count + 1 end
      redis.call('DEL', KEYS[i])
    elseif held and held.userId == userId then
      redis.call('DEL', KEYS[i])
    elseif not r and not held and not (value and string.find(value, '^[fx] ')) then
      redis.call('DEL', KEYS[i])
    end
    try('ZREM', index, m)
  end
end
if extent == 'all' then
  -- Also where nothing is left: a full Redis lets a script write on after its first deletion, and so raises the floor.
  if not spares then redis.call('DEL', index) end
  if passwordVersion ~= '' then
    version = math.max(tonumber(version) or 0, tonumber(passwordVersion))
    holds = math.max(tonumber(holds) or 0, tonumber(ARGV[7]))
    keep(floor, string.format('%.0f %.0f', version, holds), holds - now + tonumber(ARGV[8]))
  end
end
return {'ended', clock, count}
`)

/**
 * Ends a record for one that was prepared on another slot: this decides that the new one becomes live.
 *
 * KEYS: record. ARGV: version, attempt, life ms of the mark.
 */
export const END = script(`
local value = get(KEYS[1])
if value == 'x ' .. ARGV[4] then return {'ended', clock} end
local r = parse(value)
if not r or r.expires <= now then return {'gone', clock} end
if r.version ~= tonumber(ARGV[3]) then return {'conflict', clock} end
redis.call('SET', KEYS[1], 'x ' .. ARGV[4], 'PX', ARGV[5])
return {'ended', clock}
`)

/** Takes back what this attempt prepared. KEYS: record, index (none: not given). ARGV: attempt. */
export const UNDO = script(`
if pending(get(KEYS[1])) == ARGV[3] then
  redis.call('DEL', KEYS[1])
  if KEYS[2] then try('ZREM', KEYS[2], member(KEYS[1])) end
end
return {'undone', clock}
`)

/**
 * Removes a value that no record can be. Answers `discarded` where that value is found, or one of another type, also on a
 * server that cannot remove it now; `absent` where there is none, `other` where something else is there. KEYS: record.
 * ARGV: the value.
 */
export const DISCARD = script(`
local value = get(KEYS[1])
if not value and redis.call('EXISTS', KEYS[1]) == 0 then return {'absent', clock} end
if value and value ~= ARGV[3] then
  -- What is not UTF-8 is not what a client made of it; the rest is compared, as far as a header reaches: this takes 27 ms
  -- for a megabyte. A client writes three bytes for one that it does not understand.
  local function ascii(text, most) return (string.gsub(string.sub(text, 1, most), '[\\128-\\255]+', '')) end
  local found, read = ascii(value, ${HEADER}), ascii(ARGV[3], ${3 * HEADER})
  if #value > ${HEADER} then read = string.sub(read, 1, #found) end
  if found ~= read then return {'other', clock} end
end
redis.pcall('DEL', KEYS[1])
return {'discarded', clock}
`)

/**
 * Reads one page of all keys on this server, without the index and the floor of users.
 *
 * ARGV after deadline and now: run ID of the server that the cursor is from (empty: of no matter), cursor, pattern of the
 * names, COUNT. Answers `other` where this server is another one, else its run ID, the next cursor, session keys and
 * their values in turn, session keys that could not be read here, and why not.
 */
export const SCAN = script(`
local function info(section, field) return string.match(redis.call('INFO', section), field .. ':(%w+)') or '-' end
local server = info('server', 'run_id')
if ARGV[3] ~= '' and ARGV[3] ~= server then return {'other', clock, server} end
if info('replication', 'role') == 'slave' then return redis.error_reply('READONLY no longer the master') end
local page = redis.call('SCAN', ARGV[4], 'MATCH', ARGV[5], 'COUNT', ARGV[6])
local found, refused, reason = {}, {}, ''
for _, name in ipairs(page[2]) do
  local shard, rest = string.match(string.sub(name, -49), '^{([%w_-][%w_-][%w_-])}:([%w_-]+)$')
  if shard then
    local value = redis.pcall('GET', name)
    if type(value) == 'string' then
      found[#found + 1] = shard .. rest
      found[#found + 1] = value
    elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then
      refused[#refused + 1] = shard .. rest
      reason = value.err
    end
  end
end
return {'page', clock, server, page[1], found, refused, reason}
`)
