// A mark says what became of a session of the other library: which session took its place, or that it is worth nothing.
// It is written once, by the store's create, so that of any number of requests on any number of nodes one decides. It
// outlives the old record, so that an old cookie never leads to a second session, even where that record cannot be removed
// or an old node writes it back. A mark is a record of the kind that visitors never read, without a user.
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import type { AnyContext } from '../manager/context.ts'
import { hashOf, keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import type { OldSession } from './from.ts'

const DAY = 86_400_000
/** Longer no browser keeps a cookie (RFC 6265bis, section 5.5), in ms. */
const LONGEST = 400 * DAY

/** What a mark says. */
export interface MarkText {
  /** Key of the session that took the place; `''`: none did, and none will. */
  readonly key: string
  /** By which its ID is derived from what the browser has. */
  readonly salt: string
  /** Until when the old cookie leads to a session that the browser was seen to have the new cookie of, epoch ms. */
  readonly until: number
  /** The old cookie leads to the session, and the browser gets no other, while nodes of the old service run. */
  readonly isLent: boolean
}

export interface Mark extends MarkText {
  readonly record: SessionRecord
}

/** A session that is worth nothing from now on. */
export const WORTHLESS: MarkText = { key: '', salt: '', until: 0, isLent: false }

type OldTimes = Pick<OldSession, 'createdAt' | 'seenAt' | 'expiresAt'>

export class Marks {
  readonly #context: AnyContext
  /** The cookie's name: two libraries of one service may give the same ID. */
  readonly #source: string

  constructor(context: AnyContext, source: string) {
    this.#context = context
    this.#source = source
  }

  #keyOf(kind: 'session' | 'user', name: string): string {
    return keyOf(hashOf(`${kind}\0${this.#source}\0${name}`), `import\0${this.#context.space}`)
  }

  async read(id: string, deadline: number): Promise<Mark | null> {
    const record = await this.#read(this.#keyOf('session', id), textOf(WORTHLESS), deadline)
    return record === null ? null : { ...markFrom(record), record }
  }

  /** Whether the user's sessions of the other library were ended: all but those that are known to have begun later. */
  async hasUserEnded(user: string, begun: number | null, deadline: number): Promise<boolean> {
    const record = await this.#read(this.#keyOf('user', user), String(this.#context.now()), deadline)
    return record !== null && !((begun ?? 0) > Number(record.data) + CLOCK_TOLERANCE)
  }

  async endUser(user: string, deadline: number): Promise<void> {
    const key = this.#keyOf('user', user)
    const data = String(this.#context.now())
    for (;;) {
      if (await this.#create(key, data, LONGEST, deadline)) return
      const found = await this.#read(key, data, deadline)
      if (found !== null && (await this.#keep(found, data, LONGEST, deadline))) return
    }
  }

  /** Writes a mark; `false` where there is one already. `old`: what is known of the old record. */
  create(id: string, text: MarkText, old: OldTimes | null, deadline: number): Promise<boolean> {
    return this.#create(this.#keyOf('session', id), textOf(text), this.#lifeFor(old), deadline)
  }

  /** Writes other text into a mark; `false` where another request was first. */
  change({ record }: Mark, text: MarkText, deadline: number): Promise<boolean> {
    return this.#keep(record, textOf(text), this.#lifeOf(record), deadline)
  }

  /** The old cookie still comes: the mark must not end before it. Once in half of a mark's life. */
  async sight({ record }: Mark, deadline: number): Promise<void> {
    const life = this.#lifeOf(record)
    if (record.expiresAt - this.#context.now() < life / 2) await this.#keep(record, record.data, life, deadline)
  }

  /**
   * As long as the old record could live and as long again, and a day more: a late write of an old node begins its time
   * anew, however little of it was left.
   */
  #lifeFor(old: OldTimes | null): number {
    const begun = old?.seenAt ?? old?.createdAt ?? null
    const end = old?.expiresAt ?? null
    const life = begun === null || end === null ? LONGEST : end - begun
    return Math.min(LONGEST, Math.max(2 * life, this.#context.options.absolute) + DAY)
  }

  /** What it was given when it was made. */
  #lifeOf({ createdAt, seenAt, expiresAt }: SessionRecord): number {
    return expiresAt - Math.max(createdAt, seenAt)
  }

  /**
   * A mark decides as long as it is stored, also where it has expired and was not swept yet: until then the store's create
   * finds its key taken, so that what it says could not be written anew. A damaged one has been removed by the store, which
   * tells so once: it is written anew as an `end`, or an old session that is over would begin again.
   */
  async #read(key: string, end: string, deadline: number): Promise<SessionRecord | null> {
    const { record, corrupt } = await this.#context.calls.read(key, { now: 0, deadline })
    if (corrupt === null) return record
    this.#context.emit({ type: 'corrupt-record', key: key as SessionKey, cause: corrupt })
    await this.#create(key, end, LONGEST, deadline)
    return (await this.#context.calls.read(key, { now: 0, deadline })).record
  }

  async #create(key: string, data: string, life: number, deadline: number): Promise<boolean> {
    const now = this.#context.now()
    const record: SessionRecord = {
      key: key as SessionRecord['key'],
      kind: 'remember',
      parent: null,
      userId: null,
      userName: null,
      passwordVersion: null,
      data,
      version: 1,
      writeId: newWriteId(),
      createdAt: now,
      seenAt: now,
      expiresAt: now + life,
      absoluteExpiresAt: now + 10 * LONGEST,
    }
    const { outcome } = await this.#context.calls.create(record, {}, { now, deadline })
    return outcome === 'created'
  }

  async #keep(record: SessionRecord, data: string, life: number, deadline: number): Promise<boolean> {
    const now = this.#context.now()
    const change = { data, seenAt: now, expiresAt: now + life, writeId: newWriteId() }
    // As `#read` does: a store updates no record that has expired.
    const call = { now: Math.min(now, record.expiresAt - 1), deadline }
    return (await this.#context.calls.update(record.key, record.version, change, call)) === 'updated'
  }
}

/** Whether the old cookie may still lead to a session whose browser was seen to have the new one, by any node's clock. */
export const isInGrace = ({ until }: MarkText, now: number): boolean => now < until + CLOCK_TOLERANCE

const textOf = ({ key, salt, until, isLent }: MarkText): string => JSON.stringify([key, salt, until, isLent])

/** What cannot be read counts as worthless: the user logs in again, and no session begins twice. */
function markFrom({ data }: SessionRecord): MarkText {
  try {
    const [key, salt, until, isLent] = JSON.parse(data) as unknown[]
    if (typeof key === 'string' && typeof salt === 'string' && typeof until === 'number' && typeof isLent === 'boolean')
      return { key, salt, until, isLent }
  } catch {
    return WORTHLESS
  }
  return WORTHLESS
}
