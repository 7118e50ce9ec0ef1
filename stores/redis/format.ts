// What a session looks like in Redis: one line for people and scripts, then the data as the codec wrote it.
//
//   s 3 Zk1vX0bq7TnE 1767225600000 61250 30m 12h 5m 7 - 42 ada
//   {"theme":"dark"}
//
// kind (s session, r remember-me series), version, write ID, createdAt, seenAt after that, expiresAt after seenAt,
// absoluteExpiresAt after createdAt, and when Redis expires the key at the latest, by its own clock, after that; password
// version, parent, user ID, name.
// Spans are milliseconds, or have a unit: s, m, h. `-` is null; blanks and % are percent-encoded.
//
//   f <movedTo> <until> <kept until> <salt>     a forward
//   p <attempt> <record>                        prepared: not live until the old session on another shard has ended
//   x <attempt>                                 ended for what that attempt prepared
import { corruption } from '../../src/contract/record.ts'
import { type Corrupt, FORWARD_LIFETIME, type Forward, type SessionRecord } from '../../src/contract/store.ts'

/** A text as a client answers it: Buffers come with a type mapping. */
export const text = (reply: unknown) => (typeof reply === 'string' ? reply : String(reply))

/** A text without blanks, as it stands in a header line. */
export const escaped = (text: string) =>
  text === '-' ? '%2D' : /[\s%]/.test(text) ? text.replace(/[\s%]/g, encodeURIComponent) : text
const unescaped = (text: string) => (text.includes('%') ? decodeURIComponent(text) : text)
const UNITS = { h: 3_600_000, m: 60_000, s: 1000 } as const
const spanOf = (ms: number) => {
  if (ms === 0) return '0'
  for (const unit of ['h', 'm', 's'] as const) if (ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`
  return `${ms}`
}

/** The value of a record's key; the script that stores it knows until when it is kept. */
export function encodeRecord(record: SessionRecord): string {
  const { createdAt, seenAt, userId, userName } = record
  const fields = [
    record.kind === 'session' ? 's' : 'r',
    record.version,
    record.writeId,
    createdAt,
    spanOf(seenAt - createdAt),
    spanOf(record.expiresAt - seenAt),
    spanOf(record.absoluteExpiresAt - createdAt),
    0,
    record.passwordVersion ?? '-',
    record.parent ?? '-',
    userId === null ? '-' : escaped(userId),
    userName === null ? '-' : escaped(userName),
  ]
  return `${fields.join(' ')}\n${record.data}`
}

/** The value that a replacement leaves under the old key. */
export function encodeForward(movedTo: string, forward: { salt: string; until: number }, now: number): string {
  return `f ${movedTo} ${forward.until} ${Math.max(now, forward.until) + FORWARD_LIFETIME} ${escaped(forward.salt)}`
}

const DIGITS = /^(0|[1-9][0-9]{0,15})$/
const instant = (text: string | undefined) => (text !== undefined && DIGITS.test(text) ? Number(text) : Number.NaN)

// One expression for the line is twice as fast as a split and a test for each field, and `read` decodes at every request.
const WHOLE = '(0|[1-9][0-9]{0,15})'
const SPAN = '(-?(?:0|[1-9][0-9]{0,15}))([smh]?)'
const WORD = '([^ \\n]*)'
const HEADER = new RegExp(
  `^([sr]) ${WHOLE} ${WORD} ${WHOLE} ${SPAN} ${SPAN} ${SPAN} ${SPAN} (?:-|${WHOLE}) ${WORD} ${WORD} ${WORD}\\n`,
)
const msOf = (count: string, unit: string) => (unit === '' ? +count : +count * UNITS[unit as keyof typeof UNITS])

/** Reads the value of a session's key: the record (live or not), a forward, what is wrong with it, or `null`. */
export function decode(key: string, value: string): (SessionRecord & { movedTo?: never }) | Forward | Corrupt | null {
  if (value.startsWith('f ')) return decodeForward(value)
  if (value.startsWith('x ') || value.startsWith('p ')) return null
  const line = HEADER.exec(value)
  if (line === null) return { corrupt: 'the header line is missing or malformed' }
  const createdAt = Number(line[4])
  const seenAt = createdAt + msOf(line[5]!, line[6]!)
  let userId: string | null = null
  let userName: string | null = null
  try {
    if (line[15] !== '-') userId = unescaped(line[15]!)
    if (line[16] !== '-') userName = unescaped(line[16]!)
  } catch {
    return { corrupt: 'user ID or name is malformed' }
  }
  const record: SessionRecord = {
    key,
    kind: line[1] === 's' ? 'session' : 'remember',
    parent: line[14] === '-' ? null : line[14]!,
    userId,
    userName,
    passwordVersion: line[13] === undefined ? null : Number(line[13]),
    data: value.slice(line[0].length),
    version: Number(line[2]),
    writeId: line[3]!,
    createdAt,
    seenAt,
    expiresAt: seenAt + msOf(line[7]!, line[8]!),
    absoluteExpiresAt: createdAt + msOf(line[9]!, line[10]!),
  }
  const corrupt = corruption(record)
  return corrupt === null ? record : { corrupt }
}

function decodeForward(value: string): Forward | Corrupt {
  const [, movedTo, until, keptUntil, salt] = value.split(' ')
  const forward = { movedTo: movedTo ?? '', until: instant(until), salt: '' }
  if (!/^[A-Za-z0-9_-]{46}$/.test(forward.movedTo) || Number.isNaN(forward.until) || Number.isNaN(instant(keptUntil)))
    return { corrupt: 'the forward is malformed' }
  try {
    return { ...forward, salt: unescaped(salt ?? '') }
  } catch {
    return { corrupt: 'the forward is malformed' }
  }
}

/** Until when a forward is reported, epoch ms. */
export const forwardKeptUntil = (value: string) => instant(value.split(' ')[3])
