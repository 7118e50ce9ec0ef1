// What comes out of a store, or goes into one, and what an operator writes: records, data, user IDs, options, URLs.
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'coatcheck'
import { UsageError } from '../../../command/exit.ts'
import { parseStoreUrl } from '../../../command/store-url.ts'
import { SessionError } from '../../../src/contract/errors.ts'
import { jsonCodec } from '../../../src/data/codec.ts'
import { copyPlain } from '../../../src/data/plain.ts'
import { USER_ID_FORMATS } from '../../../src/session/user-id.ts'
import { milliseconds } from '../../../src/text/duration.ts'
import { decode, encodeRecord } from '../../../stores/redis/format.ts'
import { unpacked } from '../../../stores/sql/packed.ts'
import { type Cell, fromRow } from '../../../stores/sql/rows.ts'
import { answerOf, BASE64URL, DIGITS, isDecimal, onlyOf, same, type Target } from './target.ts'
import { VALUE_TOKENS, valueFrom } from './values.ts'

const KEY = 'abcZk1vX0bq7TnE-Zk1vX0bq7TnE_Zk1vX0bq7TnEabcde'.slice(0, 46)
const MAX_U64 = 18446744073709551615n
const isKeyText = (text: unknown): text is string =>
  typeof text === 'string' && text.length === 46 && onlyOf(text, BASE64URL)
/** ECMA-262, 21.4.1.1. */
const isInstant = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 864e13

/** Whether text is well-formed UTF-16, by a loop over the pairs. */
function isWellFormed(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code >= 0xdc00 && code < 0xe000) return false
    if (code >= 0xd800 && code < 0xdc00) {
      at += 1
      const next = text.charCodeAt(at)
      if (!(next >= 0xdc00 && next < 0xe000)) return false
    }
  }
  return true
}

const userId: Target = {
  name: 'user-id',
  reads: 'user IDs of the three kinds',
  corpus: [
    '0',
    '42',
    '9007199254740991',
    '9007199254740992',
    '18446744073709551615',
    '18446744073709551616',
    '-1',
    '0x10',
    ' 12',
    '1e3',
    '007',
    'ada',
    '\u{1f36a}',
    'a\tb',
    'x'.repeat(128),
  ],
  tokens: ['0', '9', '18446744073709551615', '-', '+', '.', 'e', 'n', 'x', ' ', '_', '\ud800', '\udc00', '\0', '\x7f'],
  check(input) {
    const { u64, number, text } = USER_ID_FORMATS
    const big = isDecimal(input, 20) && BigInt(input) <= MAX_U64 ? BigInt(input) : null
    same(u64.fromText(input), big, 'u64')
    same(number.fromText(input), big !== null && big < 2n ** 53n ? Number(input) : null, 'number')
    const codes = [...input].map(char => char.codePointAt(0)!)
    const isText =
      input.length >= 1 && input.length <= 128 && isWellFormed(input) && !codes.some(code => code < 32 || code === 127)
    same(text.fromText(input), isText ? input : null, 'text')
    if (big !== null) {
      same(u64.toText(big), input, 'u64 to text')
      if (big < 2n ** 53n)
        same([u64.toText(Number(input)), number.toText(Number(input))], [input, input], 'number to text')
    }
    for (const format of [u64, number] as const)
      assert.match(
        (answerOf(() => format.toText(input as never)) as { typeError: string }).typeError,
        /^user ID: expected /,
      )
    same('value' in answerOf(() => text.toText(input)), isText, 'text to text')
    const value = Number(input)
    same(
      'value' in answerOf(() => number.toText(value)),
      Number.isInteger(value) && value >= 0 && value < 2 ** 53,
      'a number',
    )
    return `${big !== null} ${isText} ${Number.isInteger(value)}`
  },
  large: [
    length => '9'.repeat(length),
    length => `${'1'.repeat(length)}x`,
    length => 'a'.repeat(length),
    length => '\u0001'.repeat(length),
  ],
}

const UNITS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 }
const duration: Target = {
  name: 'duration',
  reads: 'durations in options',
  corpus: [
    '500ms',
    '30m',
    '12h',
    '1.5h',
    '0.5ms',
    '36500d',
    '36501d',
    '0s',
    '1 h',
    '1H',
    '-1m',
    '1e3s',
    '.5s',
    '5.s',
    '1',
    '١h',
  ],
  tokens: ['ms', 's', 'm', 'h', 'd', '.', '0', '9', '1', ' ', '-', 'e', 'Infinity', 'NaN', '\n', '_'],
  check(input) {
    const unit = input.endsWith('ms') ? 'ms' : input.slice(-1)
    const count = input.slice(0, input.length - unit.length)
    const [whole = '', fraction, ...more] = count.split('.')
    const isSound =
      unit in UNITS &&
      Object.hasOwn(UNITS, unit) &&
      more.length === 0 &&
      [whole, fraction ?? '0'].every(digits => digits !== '' && onlyOf(digits, DIGITS))
    const ms = isSound ? Math.round(Number.parseFloat(count) * UNITS[unit]!) : 0
    const answer = answerOf(() => milliseconds(input as never, 'idleTimeout'))
    if (ms >= 1 && ms <= 36500 * 864e5) same(answer, { value: ms }, 'milliseconds')
    else assert.match((answer as { typeError: string }).typeError, /^idleTimeout: expected a duration/)
    return `${unit in UNITS ? unit : '-'} ${isSound} ${ms > 0}`
  },
  large: [
    length => '1'.repeat(length),
    length => `${'1'.repeat(length)}.`,
    length => `1.${'1'.repeat(length)}x`,
    length => `${'1.'.repeat(length / 2)}m`,
  ],
}

/** A record by its rules, or `null` where one is broken: the reference for both kinds of store. */
const isSoundRecord = (record: Record<string, unknown>): boolean =>
  isKeyText(record.key) &&
  (record.kind === 'session' || record.kind === 'remember') &&
  (record.parent === null || isKeyText(record.parent)) &&
  (record.userId === null ? record.username === null : typeof record.userId === 'string' && record.userId.length > 0) &&
  (record.userId === null || typeof record.username === 'string') &&
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
  username: 'Ada % Lovelace\n',
  passwordVersion: 7,
  data: '{"theme":"dark"}',
  version: 3,
  writeId: 'Zk1vX0bq7TnE',
  createdAt: 1767225600000,
  seenAt: 1767225661250,
  expiresAt: 1767227461250,
  absoluteExpiresAt: 1767268800000,
}

function plainText(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The value of a key in Redis, read field by field. */
function redisReference(value: string): unknown {
  if (value[1] === ' ' && (value[0] === 'x' || value[0] === 'p')) return null
  const whole = (text: string | undefined) => (text !== undefined && isDecimal(text, 16) ? Number(text) : Number.NaN)
  if (value.startsWith('f ')) {
    const [, movedTo, until, kept, salt = ''] = value.split(' ')
    const plain = plainText(salt)
    const isSound = isKeyText(movedTo) && whole(until) >= 0 && whole(kept) >= 0 && plain !== undefined
    return isSound ? { movedTo, until: whole(until), salt: plain } : 'corrupt'
  }
  const end = value.indexOf('\n')
  const fields = value.slice(0, Math.max(end, 0)).split(' ')
  if (end < 0 || fields.length !== 12) return 'corrupt'
  const span = (text: string) => {
    const unit = { s: 1000, m: 60_000, h: 3_600_000 }[text.slice(-1)]
    const digits = (text.startsWith('-') ? text.slice(1) : text).slice(0, unit === undefined ? undefined : -1)
    return isDecimal(digits, 16) ? Number(digits) * (unit ?? 1) * (text.startsWith('-') ? -1 : 1) : Number.NaN
  }
  const [kind, version, writeId, created, seen, idle, absolute, kept, passwordVersion, parent, user, name] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const userText = user === '-' ? null : plainText(user)
  const nameText = name === '-' ? null : plainText(name)
  const createdAt = whole(created)
  const seenAt = createdAt + span(seen)
  const record = {
    key: KEY,
    kind: { s: 'session', r: 'remember' }[kind],
    parent: parent === '-' ? null : parent,
    userId: userText,
    username: nameText,
    passwordVersion: passwordVersion === '-' ? null : whole(passwordVersion),
    data: value.slice(end + 1),
    version: whole(version),
    writeId,
    createdAt,
    seenAt,
    expiresAt: seenAt + span(idle),
    absoluteExpiresAt: createdAt + span(absolute),
  }
  return isSoundRecord(record) && !Number.isNaN(span(kept)) ? record : 'corrupt'
}

const redis: Target = {
  name: 'redis-format',
  reads: 'the values that the Redis store keeps',
  corpus: [
    encodeRecord(RECORD),
    encodeRecord({ ...RECORD, kind: 'remember', userId: null, username: null, passwordVersion: null, parent: KEY }),
    's 3 Zk1vX0bq7TnE 1767225600000 61250 30m 12h 5m 7 - 42 ada\n{"theme":"dark"}',
    `f ${KEY} 1767225600000 1767225720000 Zk1vX0bq7TnEZk1v`,
    `p abc s 1 w 1 0 1 1 0 - - - -\n`,
    'x abc',
    's 1 w 0 -1 1h -0 0 4294967296 - %F0%9F - \n',
  ],
  tokens: [
    ' ',
    '\n',
    '-',
    '0',
    '1',
    's',
    'm',
    'h',
    '%',
    '%20',
    '%2D',
    '%C3%A9',
    'f ',
    'x ',
    'p ',
    KEY,
    '9999999999999999',
    '8640000000000000',
    '\t',
    '\u00a0',
    '\r',
  ],
  check(input) {
    const ours = decode(KEY, input)
    const reference = redisReference(input)
    same(ours !== null && 'corrupt' in ours ? 'corrupt' : ours, reference, 'decode')
    // Whatever name a user has, what is written is what is read.
    const name = input.slice(0, 256)
    const written = {
      ...RECORD,
      userId: input.slice(0, 128).toWellFormed() || '-',
      username: name.toWellFormed(),
      data: input,
    }
    same(decode(KEY, encodeRecord(written)), written, 'encodeRecord and decode')
    return reference === null || reference === 'corrupt'
      ? `${reference}`
      : Object.keys(reference as object).length > 3
        ? `record ${(reference as { userId: unknown }).userId === null}`
        : 'forward'
  },
  large: [
    length => `s 3 ${'w'.repeat(length)}`,
    length => `s 3 w 1 1 1 1 0 - ${' '.repeat(length)}`,
    length => `s 3 w ${'1'.repeat(length)}\n`,
    length => `f ${' '.repeat(length)}`,
    length => `s 3 w 1 0 1 1 0 - - ${'%20'.repeat(length / 3)} x\n`,
  ],
  time: input => decode(KEY, input),
}

const NOW = 1767226000000
const PACK = `${KEY}|session||7|3|Zk1vX0bq7TnE|1767225600000|1767225661250|1767227461250|1767268800000||42`
/** What stands for a cell: a driver may give texts, numbers, bigints and NULL. */
function cellFrom(text: string): Cell {
  if (text === '!') return null
  if (text.startsWith('#')) return Number(text.slice(1))
  if (text.startsWith('$') && isDecimal(text.slice(1), 30)) return BigInt(text.slice(1))
  return text
}

function rowReference(cells: readonly Cell[], userIds: 'u64' | 'text', now: number): unknown {
  const pack = (cells[0] as string).split('|')
  if (pack.length !== 12) return 'corrupt'
  const [
    key,
    kind,
    parent,
    passwordVersion,
    version,
    writeId,
    createdAt,
    seenAt,
    expiresAt,
    absoluteExpiresAt,
    movedTo,
    packedUser,
  ] = pack.map(cell => (cell === '' ? null : cell)) as (string | null)[]
  const [tenant, username, data] = [cells[1], cells[2], cells[3]]
  const user = userIds === 'text' ? cells[4] : packedUser
  const integer = (text: string | null | undefined) => (typeof text === 'string' ? Number(text) : Number.NaN)
  const end = integer(expiresAt)
  if (end >= 0 && end <= now) return null
  if (movedTo !== null) {
    const until = integer(absoluteExpiresAt)
    const isSound =
      isKeyText(movedTo) && typeof data === 'string' && Number.isSafeInteger(until) && Number.isSafeInteger(end)
    return isSound ? { movedTo, salt: data, until } : 'corrupt'
  }
  let userText: unknown = null
  if (user !== null) {
    const isUser =
      typeof user === 'string' &&
      typeof tenant === 'string' &&
      (userIds === 'text' || (isDecimal(user, 20) && BigInt(user) <= MAX_U64))
    userText = isUser ? (tenant === '' ? user : `${tenant}\t${user}`) : ''
  }
  const record = {
    key,
    kind,
    parent,
    userId: userText,
    username,
    passwordVersion: passwordVersion === null ? null : integer(passwordVersion),
    data,
    version: integer(version),
    writeId,
    createdAt: integer(createdAt),
    seenAt: integer(seenAt),
    expiresAt: end,
    absoluteExpiresAt: integer(absoluteExpiresAt),
  }
  return isSoundRecord(record) ? record : 'corrupt'
}

const row: Target = {
  name: 'sql-row',
  reads: 'rows of the SQL tables, packed and apart',
  corpus: [
    `${PACK}\n\nada\n{}\n42`,
    `${PACK}\ntenant\nada|b\n{"a":"|"}\nada`,
    `${PACK.replace('||42', `|${KEY}|`)}\n\n!\nZk1vX0bq7TnEZk1v\n!`,
    `${PACK.replace('||7', `|${KEY}|4294967295`)}\n!\n#1\n$2\n!`,
    `${PACK.replace('1767227461250', '1')}\n\nada\n{}\n42`,
    `${PACK.replace('|42', '|')}\n\n!\n{}\n!`,
  ],
  tokens: [
    '|',
    '\n',
    '!',
    '#',
    '$',
    '0',
    '-1',
    '?',
    KEY,
    'session',
    'remember',
    '18446744073709551615',
    '18446744073709551616',
    '8640000000000001',
    '4294967296',
    '\t',
    '0x10',
    '1e3',
    ' ',
    '1.5',
    'NaN',
  ],
  check(input) {
    const parts = input.split('\n')
    const kinds: string[] = []
    for (const userIds of ['u64', 'text'] as const) {
      const rest = Array.from({ length: userIds === 'text' ? 4 : 3 }, (_, at) => cellFrom(parts[at + 1] ?? '!'))
      const cells = [parts[0], ...rest]
      const ours = fromRow(unpacked(cells), NOW, userIds)
      const reference = rowReference(cells, userIds, NOW)
      same(ours !== null && 'corrupt' in ours ? 'corrupt' : ours, reference, `fromRow with ${userIds}`)
      kinds.push(
        reference === null ? 'over' : typeof reference === 'string' ? reference : Object.keys(reference as object)[0]!,
      )
    }
    return kinds.join(' ')
  },
  large: [
    length => '|'.repeat(length),
    length => `${KEY}|session|${'a'.repeat(length)}|||||||||`,
    length => `${PACK}${'1'.repeat(length)}`,
  ],
  time: input => fromRow(unpacked([input, '', 'ada', '{}']), NOW, 'u64'),
}

/** What JSON makes of a value, without the members that are undefined; `refused` where it would change the value. */
const REFUSED = Symbol('refused')
function survives(value: unknown, above: readonly object[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : REFUSED
  if (typeof value !== 'object' || above.includes(value) || above.length >= 100) return REFUSED
  const below = [...above, value]
  const names = Reflect.ownKeys(value)
  const isArray = Array.isArray(value)
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== (isArray ? Array.prototype : Object.prototype) && !(prototype === null && !isArray)) return REFUSED
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return REFUSED
  if (isArray) {
    if (
      names.length !== value.length + 1 ||
      names.some((name, at) => name !== (at < value.length ? `${at}` : 'length'))
    )
      return REFUSED
    const members = value.map(member => survives(member, below))
    return members.includes(REFUSED) ? REFUSED : members
  }
  const kept: [string, unknown][] = []
  for (const name of names) {
    const { value: member, enumerable } = Object.getOwnPropertyDescriptor(value, name)!
    if (typeof name === 'symbol' || !enumerable || name === '__proto__' || name === 'constructor') return REFUSED
    if (member === undefined) continue
    const copy = survives(member, below)
    if (copy === REFUSED) return REFUSED
    kept.push([name, copy])
  }
  return Object.fromEntries(kept)
}

const codec: Target = {
  name: 'codec',
  reads: 'session data: any value into the codec, any text out of it',
  corpus: [
    '{s:an:b',
    '[123]',
    '{8:a',
    '{d:a',
    '{{1:f:a',
    '{1:g',
    '[[[1]]]',
    'H',
    'X',
    '{u:a',
    '{T:a',
    '{1(((( :a',
    '{"isAdmin":true}',
    '{"__proto__":{"isAdmin":true}}',
    '{c:a',
    '{2:a',
    'O1:a',
    '[cc]',
    'I',
    'Y',
  ],
  tokens: [...VALUE_TOKENS, '"__proto__":', '{"a":', '}', '"', '\\u0000', ','],
  check(input) {
    const value = valueFrom(input)
    const expected = survives(value, [])
    let text: string | null = null
    try {
      text = jsonCodec.encode(value)
    } catch (error) {
      if (!(error instanceof SessionError && error.code === 'ERR_SESSION_DATA')) throw error
      assert.match(error.message, /^data/)
    }
    same(text !== null, expected !== REFUSED, 'encode')
    if (text !== null) assert.ok(isDeepStrictEqual(jsonCodec.decode(text), expected), 'what was encoded comes back')
    // Any text: JSON or a SyntaxError; a copy of what it says has own members alone.
    let read: unknown
    let isJson = true
    try {
      read = jsonCodec.decode(input)
    } catch (error) {
      assert.ok(error instanceof SyntaxError)
      isJson = false
    }
    if (isJson) assert.deepEqual(JSON.stringify(copyPlain(read)), JSON.stringify(read))
    return `${text === null} ${isJson} ${typeof value}`
  },
  large: [
    length => `{${'s:a'.repeat(length / 3)}`,
    length => '[1]'.repeat(length / 3),
    length => `[${'1'.repeat(length)}]`,
    length => '('.repeat(length),
  ],
}

/** JSON text by JSON.stringify, where bigints stand as marked texts until the end. */
function jsonReference(value: unknown): string | undefined {
  const mark = '\u{e000}bigint:'
  const plain = (each: unknown) =>
    typeof each === 'object' && each !== null && Object.prototype.toString.call(each) === '[object BigInt]'
      ? BigInt.prototype.valueOf.call(each)
      : each
  const text = JSON.stringify(value, (_, each) => {
    const own = plain(each)
    return typeof own === 'bigint' ? `${mark}${own}` : each
  })
  return text?.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1')
}

const json: Target = {
  name: 'stringify',
  reads: 'any value into `stringify`',
  corpus: [
    '{8:a',
    '[8b]',
    '{q:as:bl:c',
    '[2567]',
    '[NSB]',
    'T',
    '{T:a',
    '[dmp]',
    '[uyF]',
    '{u:a',
    'H',
    'X',
    '{c:a',
    '[[c]c]',
    '{1:f',
    'O8:a',
    'U',
    '(((',
  ],
  tokens: VALUE_TOKENS,
  check(input) {
    const value = valueFrom(input)
    let expected: string | undefined | null
    try {
      expected = jsonReference(value)
    } catch (error) {
      assert.match(String(error), /circular/)
      expected = null
    }
    const ours = answerOf(() => stringify(value))
    if (expected === null) assert.match((ours as { typeError: string }).typeError, /contains itself/)
    else same(ours, { value: expected }, 'stringify')
    // Texts, as they are.
    same(stringify(input), JSON.stringify(input), 'a text')
    return `${expected === null} ${typeof value} ${expected?.length === 2}`
  },
  large: [length => `[${'8'.repeat(length)}]`, length => `{${'s:a'.repeat(length / 3)}`, length => '"'.repeat(length)],
  time: input => [stringify(input), stringify(valueFrom(input))],
}

const PASSWORD = 'hunter2-hunter2'
const storeUrl: Target = {
  name: 'store-url',
  reads: 'the store URL of the command',
  corpus: [
    `redis://default:${PASSWORD}@127.0.0.1:6379/0`,
    'rediss://[::1]:6380',
    `redis+cluster://:${PASSWORD}@a:7000,b:7001,[::1]:7002`,
    `postgres://ada:${PASSWORD}%40@db.example.com:5432/app?sslmode=require&password=${PASSWORD}`,
    'postgresql:///app',
    `mysql://root:${PASSWORD}@localhost/test`,
    `mariadb://root:${PASSWORD}@localhost:3306/test#x`,
    'sqlite:./sessions.db',
    'sqlite:///var/lib/sessions.db',
    'memory:',
    `redis://${PASSWORD}@@@:99999/x`,
    `${PASSWORD}`,
  ],
  tokens: [
    'redis',
    'rediss',
    'redis+cluster',
    'postgres',
    'mysql',
    'sqlite',
    '://',
    ':',
    '@',
    '/',
    '?',
    '#',
    '&',
    '=',
    '%',
    '%40',
    '%00',
    ',',
    '[',
    ']',
    '::1',
    '6379',
    '0',
    '65536',
    PASSWORD,
    'password',
    '\n',
    ' ',
  ],
  check(input) {
    let parsed: ReturnType<typeof parseStoreUrl>
    try {
      parsed = parseStoreUrl(input, 'STORE_URL')
    } catch (error) {
      assert.ok(error instanceof UsageError, String(error))
      // A scheme is no secret, and its error names it.
      if (!new RegExp(`^[^:]*${PASSWORD}`).test(input))
        assert.ok(!error.message.includes(PASSWORD), `the error shows the password: ${error.message}`)
      return 'refused'
    }
    const at = input.indexOf('@')
    const userinfo = input.slice(
      input.indexOf('://') + 3,
      input.lastIndexOf('@', input.search(/[/?#]/g) > 0 ? undefined : input.length),
    )
    if (
      at > 0 &&
      userinfo.includes(PASSWORD) &&
      input.split(PASSWORD).length === 2 &&
      parsed.password.includes(PASSWORD)
    ) {
      assert.ok(parsed.secrets.some(secret => secret.includes(PASSWORD)))
      const place = input.slice(input.lastIndexOf('@'))
      if (!place.includes(PASSWORD))
        assert.ok(!parsed.name.includes(PASSWORD), `the name shows the password: ${parsed.name}`)
    }
    for (const { host, port } of parsed.nodes) assert.ok(host !== '' && port > 0 && port < 65536)
    // The URL Standard, where it is as strict: plain letters, and a host that it leaves as it is.
    if (/^(?:redis|postgres|mysql):\/\/[a-z0-9:@%.-]+\/[a-z0-9]*$/.test(input) && URL.canParse(input)) {
      const url = new URL(input)
      same(parsed.username, plainText(url.username), 'the user name')
      same(parsed.password, plainText(url.password), 'the password')
      if (url.password === '' || !url.host.includes(PASSWORD)) assert.ok(parsed.name.includes(url.host), parsed.name)
    }
    return `${parsed.kind} ${parsed.tls} ${parsed.username !== ''} ${parsed.nodes.length}`
  },
  large: [
    length => `redis://${'@'.repeat(length)}`,
    length => `redis://${':'.repeat(length)}`,
    length => `redis://a/${'?'.repeat(length)}`,
    length => `postgres://a/b?${'&pass'.repeat(length / 5)}`,
    length => `redis+cluster://${','.repeat(length)}`,
    length => `${'a+'.repeat(length / 2)}:`,
    length => `redis://${'['.repeat(length)}`,
    length => `sqlite:${'/'.repeat(length)}`,
  ],
  time: input => {
    try {
      return parseStoreUrl(input, 'STORE_URL')
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      return null
    }
  },
}

export const STORED: readonly Target[] = [userId, duration, redis, row, codec, json, storeUrl]
