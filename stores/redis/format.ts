// What a session looks like in Redis: one line for people and scripts, then the data as the codec wrote it.
//
//   s 3 Zk1vX0bq7TnE 1767225600000 +60000 +1860000 +43200000 +43500000 7 - 42 ada
//   {"theme":"dark"}
//
// kind (s session, r remember-me series), version, write ID, createdAt, and relative to it in ms seenAt, expiresAt,
// absoluteExpiresAt and when Redis expires the key at the latest, by its own clock; password version, parent, user ID,
// name.
// `-` is null; blanks and % are percent-encoded.
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
const relative = (instant: number, to: number) => (instant < to ? `${instant - to}` : `+${instant - to}`)

/** The value of a record's key; the script that stores it knows until when it is kept. */
export function encodeRecord(record: SessionRecord): string {
  const { createdAt, userId, username } = record
  return `${record.kind === 'session' ? 's' : 'r'} ${record.version} ${record.writeId} ${createdAt} ${relative(
    record.seenAt,
    createdAt,
  )} ${relative(record.expiresAt, createdAt)} ${relative(record.absoluteExpiresAt, createdAt)} +0 ${
    record.passwordVersion ?? '-'
  } ${record.parent ?? '-'} ${userId === null ? '-' : escaped(userId)} ${
    username === null ? '-' : escaped(username)
  }\n${record.data}`
}

/** The value that a replacement leaves under the old key. */
export function encodeForward(movedTo: string, forward: { salt: string; until: number }, now: number): string {
  return `f ${movedTo} ${forward.until} ${Math.max(now, forward.until) + FORWARD_LIFETIME} ${escaped(forward.salt)}`
}

const DIGITS = /^(0|[1-9][0-9]{0,15})$/
const OFFSET = /^[+-](0|[1-9][0-9]{0,15})$/
const instant = (text: string | undefined) => (text !== undefined && DIGITS.test(text) ? Number(text) : Number.NaN)
const offset = (text: string | undefined) => (text !== undefined && OFFSET.test(text) ? Number(text) : Number.NaN)

/** Reads the value of a session's key: the record (live or not), a forward, what is wrong with it, or `null`. */
export function decode(key: string, value: string): (SessionRecord & { movedTo?: never }) | Forward | Corrupt | null {
  if (value.startsWith('f ')) return decodeForward(value)
  if (value.startsWith('x ') || value.startsWith('p ')) return null
  const end = value.indexOf('\n')
  if (end < 0) return { corrupt: 'the value has no header line' }
  const fields = value.slice(0, end).split(' ')
  if (fields.length !== 12) return { corrupt: 'the header line has not 12 fields' }
  const [kind, version, writeId, created, seen, expires, absolute, kept, passwordVersion, parent, userId, username] =
    fields
  if (kind !== 's' && kind !== 'r') return { corrupt: 'kind is unknown' }
  if (Number.isNaN(offset(kept))) return { corrupt: 'how long it is kept is malformed' }
  const createdAt = instant(created)
  let names: { userId: string | null; username: string | null }
  try {
    names =
      userId === '-'
        ? { userId: null, username: username === '-' ? null : '' }
        : { userId: unescaped(userId!), username: unescaped(username!) }
  } catch {
    return { corrupt: 'user ID or name is malformed' }
  }
  const record: SessionRecord = {
    key,
    kind: kind === 's' ? 'session' : 'remember',
    parent: parent === '-' ? null : parent!,
    userId: names.userId,
    username: names.username,
    passwordVersion: passwordVersion === '-' ? null : instant(passwordVersion),
    data: value.slice(end + 1),
    version: instant(version),
    writeId: writeId!,
    createdAt,
    seenAt: createdAt + offset(seen),
    expiresAt: createdAt + offset(expires),
    absoluteExpiresAt: createdAt + offset(absolute),
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
