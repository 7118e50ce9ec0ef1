// What comes out of a store: records as Redis and as the SQL databases keep them.
import { decode, encodeRecord } from '../../../stores/redis/format.ts'
import { fromRow } from '../../../stores/sql/base/rows.ts'
import { SESSION_COLUMNS } from '../../../stores/sql/base/schema.ts'
import { BASE64URL, isDecimal, onlyOf, plainText, same, type Target } from './target.ts'

const KEY = 'abcZk1vX0bq7TnE-Zk1vX0bq7TnE_Zk1vX0bq7TnEabcde'.slice(0, 46)
const isKeyText = (text: unknown): text is string =>
  typeof text === 'string' && text.length === 46 && onlyOf(text, BASE64URL)
/** ECMA-262, 21.4.1.1. */
const isInstant = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 864e13

/** A record by its rules, or `null` where one is broken: the reference for both kinds of store. */
const isSoundRecord = (record: Record<string, unknown>): boolean =>
  isKeyText(record.key) &&
  (record.kind === 'session' || record.kind === 'remember') &&
  (record.parent === null || isKeyText(record.parent)) &&
  (record.userId === null ? record.userName === null : typeof record.userId === 'string' && record.userId.length > 0) &&
  (record.userId === null || typeof record.userName === 'string') &&
  (record.passwordVersion === null ||
    (typeof record.passwordVersion === 'number' && record.passwordVersion >>> 0 === record.passwordVersion)) &&
  typeof record.data === 'string' &&
  typeof record.writeId === 'string' &&
  typeof record.version === 'number' &&
  Number.isSafeInteger(record.version) &&
  record.version > 0 &&
  ['createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'].every(name => isInstant(record[name]))

const RECORD = {
  key: KEY,
  kind: 'session' as const,
  parent: null,
  userId: '42',
  userName: 'Ada % Lovelace\n',
  passwordVersion: 7,
  data: '{"theme":"dark"}',
  version: 3,
  writeId: 'Zk1vX0bq7TnE',
  createdAt: 1767225600000,
  seenAt: 1767225661250,
  expiresAt: 1767227461250,
  absoluteExpiresAt: 1767268800000,
}

/** The value of a key in Redis, read field by field. */
function redisReference(value: string): unknown {
  if (value.startsWith('x ')) return null
  const whole = (text: string | undefined) => (text !== undefined && isDecimal(text, 16) ? Number(text) : Number.NaN)
  if (value.startsWith('f ')) {
    const [, movedTo, until, kept, salt, ...rest] = value.split(' ')
    const plain = salt === undefined || salt.includes('\n') ? undefined : plainText(salt)
    const isSound =
      rest.length === 0 && isKeyText(movedTo) && whole(until) >= 0 && whole(kept) >= 0 && plain !== undefined
    return isSound ? { movedTo, until: whole(until), keptUntil: whole(kept), salt: plain } : 'corrupt'
  }
  const end = value.indexOf('\n')
  const fields = value.slice(0, Math.max(end, 0)).split(' ')
  if (end < 0 || fields.length !== 12) return 'corrupt'
  const [kind, version, writeId, created, seen, expires, absolute, kept, passwordVersion, parent, user, name] =
    fields as [string, string, string, string, string, string, string, string, string, string, string, string]
  const userText = user === '-' ? null : plainText(user)
  const nameText = name === '-' ? null : plainText(name)
  const record = {
    key: KEY,
    kind: { s: 'session', r: 'remember' }[kind],
    parent: parent === '-' ? null : parent,
    userId: userText,
    userName: nameText,
    passwordVersion: passwordVersion === '-' ? null : whole(passwordVersion),
    data: value.slice(end + 1),
    version: whole(version),
    writeId,
    createdAt: whole(created),
    seenAt: whole(seen),
    expiresAt: whole(expires),
    absoluteExpiresAt: whole(absolute),
  }
  return isSoundRecord(record) && onlyOf(kept, '0123456789') && kept !== '' ? record : 'corrupt'
}

const redis: Target = {
  name: 'redis-format',
  corpus: [
    encodeRecord(RECORD),
    encodeRecord({ ...RECORD, kind: 'remember', userId: null, userName: null, passwordVersion: null, parent: KEY }),
    's 3 Zk1vX0bq7TnE 1767225600000 1767225661250 1767227461250 1767268800000 1767269100250 7 - 42 ada\n{"theme":"dark"}',
    encodeRecord(RECORD).replace(' 3 ', ' 03 '),
    `f ${KEY} 1767225600000 1767225720000 Zk1vX0bq7TnEZk1v`,
    'x abc',
    's 1 w 0 -1 1 00 0 4294967296 - %F0%9F - \n',
  ],
  more: ['%20', '%2D', '%C3%A9', 'f ', 'x ', '9999999999999999', '8640000000000000', '\t', '\u00a0', '\r'],
  check(input) {
    const ours = decode(KEY, input)
    const reference = redisReference(input)
    same(ours !== null && 'corrupt' in ours ? 'corrupt' : ours, reference, 'decode')
    // Whatever name a user has, what is written is what is read.
    const name = input.slice(0, 256)
    const written = {
      ...RECORD,
      userId: input.slice(0, 128).toWellFormed() || '-',
      userName: name.toWellFormed(),
      data: input,
    }
    same(decode(KEY, encodeRecord(written)), written, 'encodeRecord and decode')
    return reference === null || reference === 'corrupt'
      ? `${reference}`
      : Object.keys(reference as object).length > 4
        ? `record ${(reference as { userId: unknown }).userId === null}`
        : 'forward'
  },
}

const NOW = 1767226000000
const COLUMNS = SESSION_COLUMNS.map(({ name }) => name)
const CELLS = [KEY, 'session', '!', '', '42', 'ada', '7', '{}', '3', 'Zk1vX0bq7TnE']
const INSTANTS = ['1767225600000', '1767225661250', '1767227461250', '1767268800000']

/** What a cell holds: a driver may give texts, numbers, bigints and NULL. */
function cellFrom(text: string): unknown {
  if (text === '!') return null
  if (text.startsWith('#')) return Number(text.slice(1))
  if (text.startsWith('$') && isDecimal(text.slice(1), 30)) return BigInt(text.slice(1))
  return text
}

function rowReference(row: Readonly<Record<string, unknown>>, now: number): unknown {
  const integer = (cell: unknown) => (cell === null || cell === '' ? Number.NaN : Number(cell))
  const end = integer(row.expires_at)
  if (end >= 0 && end <= now) return null
  if (row.moved_to !== null) {
    const until = integer(row.absolute_expires_at)
    const isSound = isKeyText(row.moved_to) && typeof row.data === 'string' && Number.isSafeInteger(until) && end > now
    return isSound ? { movedTo: row.moved_to, salt: row.data, until } : 'corrupt'
  }
  if (typeof row.namespace !== 'string') return 'corrupt'
  const isApart = row.user_id !== null && row.namespace !== ''
  const record = {
    key: row.id,
    kind: row.kind,
    parent: row.parent_key,
    userId: isApart ? `${row.namespace}\t${row.user_id}` : row.user_id,
    userName: row.user_name,
    passwordVersion: row.password_version === null ? null : integer(row.password_version),
    data: row.data,
    version: integer(row.version),
    writeId: row.write_id,
    createdAt: integer(row.created_at),
    seenAt: integer(row.seen_at),
    expiresAt: end,
    absoluteExpiresAt: integer(row.absolute_expires_at),
  }
  return isSoundRecord(record) ? record : 'corrupt'
}

const row: Target = {
  name: 'sql-row',
  corpus: [
    [...CELLS, ...INSTANTS, '!'].join('\n'),
    [...CELLS.with(3, 'shop').with(8, '$3').with(6, '#4294967295'), ...INSTANTS, '!'].join('\n'),
    [...CELLS.with(2, KEY).with(4, '!').with(5, '!'), ...INSTANTS, '!'].join('\n'),
    [...CELLS.with(7, 'Zk1vX0bq7TnEZk1v'), ...INSTANTS, KEY].join('\n'),
    [...CELLS, ...INSTANTS.with(2, '1'), '!'].join('\n'),
  ],
  more: ['-1', 'remember', '18446744073709551615', '8640000000000001', '4294967296', '\t', '0x10', '1e3', '1.5', 'NaN'],
  check(input) {
    const parts = input.split('\n')
    const given = Object.fromEntries(COLUMNS.map((name, at) => [name, cellFrom(parts[at] ?? '!')]))
    const ours = fromRow(given, NOW)
    const reference = rowReference(given, NOW)
    same(ours !== null && 'corrupt' in ours ? 'corrupt' : ours, reference, 'fromRow')
    if (reference === null) return 'over'
    return typeof reference === 'string' ? reference : Object.keys(reference as object)[0]!
  },
}

export const STORED: readonly Target[] = [redis, row]
