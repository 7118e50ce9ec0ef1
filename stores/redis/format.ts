// The format of a session in Redis: one header line for people and scripts, then the data as the codec wrote it.
//
//   s 3 Zk1vX0bq7TnE 1767225600000 1767225661250 1767227461250 1767268800000 1767269100250 7 - 42 ada
//   {"theme":"dark"}
//
// kind (s session, r remember-me series), version, write ID, createdAt, seenAt, expiresAt, absoluteExpiresAt, when Redis
// expires the key at the latest (by its own clock), password version, parent, user ID, name. `-` is null; blanks and %
// are percent-encoded.
//
//   f <movedTo> <until> <kept until> <salt>     a forward
//   x <write ID>                                ended by the login with this write ID, whose session is on another shard
import { corruption } from '../../src/contract/record.ts'
import { type Corrupt, FORWARD_LIFETIME, type Forward, type SessionRecord } from '../../src/contract/store.ts'

/** A text as a client answers it: Buffers come with a type mapping. */
export const text = (reply: unknown) => (typeof reply === 'string' ? reply : String(reply))

/** A text as one word of a header line. */
export const escaped = (word: string) => (word === '-' ? '%2D' : word.replace(/[\s%]/g, encodeURIComponent))
const unescaped = (word: string) => (word.includes('%') ? decodeURIComponent(word) : word)
const orDash = (word: string | null) => (word === null ? '-' : escaped(word))
const orNull = (word: string) => (word === '-' ? null : unescaped(word))

/** The value of a record's key; the script that stores it knows until when it is kept. */
export function encodeRecord(record: SessionRecord): string {
  const { kind, version, writeId, createdAt, seenAt, expiresAt, absoluteExpiresAt } = record
  const instants = `${createdAt} ${seenAt} ${expiresAt} ${absoluteExpiresAt} 0`
  const identity = `${record.passwordVersion ?? '-'} ${record.parent ?? '-'} ${orDash(record.userId)} ${orDash(record.userName)}`
  return `${kind === 'session' ? 's' : 'r'} ${version} ${writeId} ${instants} ${identity}\n${record.data}`
}

/** The value that a replacement leaves under the old key. */
export const encodeForward = (movedTo: string, { salt, until }: { salt: string; until: number }, now: number) =>
  `f ${movedTo} ${until} ${Math.max(now, until) + FORWARD_LIFETIME} ${escaped(salt)}`

// One expression for the line is twice as fast as a split and a test for each field; every request decodes.
const WHOLE = '(0|[1-9][0-9]{0,15})'
const WORD = '([^ \\n]*)'
const HEADER = new RegExp(
  `^([sr]) ${WHOLE} ${WORD} ${WHOLE} ${WHOLE} ${WHOLE} ${WHOLE} [0-9]+ (?:-|${WHOLE}) ${WORD} ${WORD} ${WORD}\\n`,
)
const FORWARD = new RegExp(`^f ([A-Za-z0-9_-]{46}) ${WHOLE} ${WHOLE} ${WORD}$`)

type Stored = (SessionRecord & { movedTo?: never }) | (Forward & { keptUntil: number }) | Corrupt | null

/**
 * Reads a client's answer for a session's key: the record (live or not), a forward, the damage, or `null`.
 *
 * @throws the error that a client answers in the place of one value it could not read
 */
export function decode(key: string, reply: unknown): Stored {
  if (reply === null || reply === undefined) return null
  if (reply instanceof Error) throw reply
  const value = text(reply)
  if (value.startsWith('x ')) return null
  try {
    return decodeForward(value) ?? decodeRecord(key, value)
  } catch {
    return { corrupt: 'a word of the header line is malformed' }
  }
}

function decodeForward(value: string) {
  const [, movedTo, until, keptUntil, salt] = (value.startsWith('f ') && FORWARD.exec(value)) || []
  return movedTo === undefined
    ? null
    : { movedTo, until: Number(until), keptUntil: Number(keptUntil), salt: unescaped(salt!) }
}

function decodeRecord(key: string, value: string): SessionRecord | Corrupt {
  const line = HEADER.exec(value)
  if (line === null) return { corrupt: 'the header line is missing or malformed' }
  const record: SessionRecord = {
    key,
    kind: line[1] === 's' ? 'session' : 'remember',
    parent: line[9] === '-' ? null : line[9]!,
    userId: orNull(line[10]!),
    userName: orNull(line[11]!),
    passwordVersion: line[8] === undefined ? null : Number(line[8]),
    data: value.slice(line[0].length),
    version: Number(line[2]),
    writeId: line[3]!,
    createdAt: Number(line[4]),
    seenAt: Number(line[5]),
    expiresAt: Number(line[6]),
    absoluteExpiresAt: Number(line[7]),
  }
  const corrupt = corruption(record)
  return corrupt === null ? record : { corrupt }
}

/** The stored record or forward, `null` if it has expired. */
export function live(stored: Exclude<Stored, Corrupt>, now: number): SessionRecord | Forward | null {
  if (stored === null) return null
  if (stored.movedTo === undefined) return stored.expiresAt > now ? stored : null
  const { movedTo, salt, until } = stored
  return stored.keptUntil > now ? { movedTo, salt, until } : null
}
