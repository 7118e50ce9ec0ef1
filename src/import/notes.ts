// A note says that an old session was imported, and how its cookie leads to the session here, or that it leads nowhere. The
// store's `create` writes a note once: of any number of requests on any number of nodes one decides. Nothing
// changes it afterwards: if its session is gone, the user has logged out, and the old cookie is worth nothing for good. It
// outlives the old record, even one that an old process writes back.
import { CLOCK_TOLERANCE, type SessionRecord } from '../contract/store.ts'
import type { Context } from '../manager/context.ts'
import { hashOf, keyOf, type SessionKey } from '../session/id.ts'
import { DAY, LONGEST, noteRecord } from '../session/note.ts'
import type { OldSession } from './from.ts'

/** How an old cookie leads to its session here. */
export interface Note {
  /** The key of the ID that the old cookie and the salt derive. */
  readonly key: string
  /** Random: somebody who has only the old store, or only this one, cannot derive the ID. */
  readonly salt: string
}
/** The old cookie leads nowhere, for good. */
export const OVER = null

/** Of a note that leads to a session. Any other text, such as the instant of an end, leads nowhere. */
const TEXT = /^([\w-]{46}) ([\w-]{16})$/

export class Notes {
  readonly #context: Context
  /** The cookie's name: two libraries of one service may give the same ID. */
  readonly #source: string

  constructor(context: Context, source: string) {
    this.#context = context
    this.#source = source
  }

  /** `undefined` if the session was not imported. A note that cannot be read counts as `OVER`: the user logs in again. */
  async read(id: string, deadline: number): Promise<Note | typeof OVER | undefined> {
    const record = await this.#read(this.#keyOf('session', id), deadline)
    if (record === null) return undefined
    const [, key, salt] = TEXT.exec(record.data) ?? []
    return key === undefined || salt === undefined ? OVER : { key, salt }
  }

  /** Writes the note of a live old session; `false` if there is one already. */
  create(id: string, note: Note | typeof OVER, old: OldSession<unknown>, deadline: number): Promise<boolean> {
    const text = note === OVER ? String(this.#context.now()) : `${note.key} ${note.salt}`
    return this.#create(this.#keyOf('session', id), text, this.#lifeFor(old), deadline)
  }

  /** Whether the user's old sessions were ended: all of them but those that are known to have begun later. */
  async hasUserEnded(user: string, begun: number | null, deadline: number): Promise<boolean> {
    const record = await this.#read(this.#keyOf('user', user), deadline)
    return record !== null && !((begun ?? 0) > Number(record.data) + CLOCK_TOLERANCE)
  }

  /** An earlier end gives way. A session that begins between both steps is ended by the manager's `invalidateUser` afterwards. */
  async endUser(user: string, deadline: number): Promise<void> {
    const key = this.#keyOf('user', user)
    const now = this.#context.now()
    while (!(await this.#create(key, String(now), LONGEST, deadline)))
      await this.#context.calls.delete(key, { now, deadline })
  }

  #keyOf(kind: 'session' | 'user', name: string): SessionKey {
    return keyOf(hashOf(`${kind}\0${this.#source}\0${name}`), `import\0${this.#context.keySpace}`)
  }

  /**
   * As long as the old record could live and as long again, at least as long as a session here, and a day: a late write of
   * the old service begins the record's time anew.
   */
  #lifeFor({ createdAt, seenAt, expiresAt }: OldSession<unknown>): number {
    const begun = seenAt ?? createdAt ?? null
    const life = begun === null || expiresAt == null ? LONGEST : expiresAt - begun
    return Math.min(LONGEST, Math.max(2 * life, this.#context.options.absolute) + DAY)
  }

  /** A note counts as long as it is stored, also if it has expired and was not swept yet: its key is taken until then. */
  async #read(key: SessionKey, deadline: number): Promise<SessionRecord | null> {
    const { record, corrupt } = await this.#context.calls.read(key, { now: 0, deadline })
    if (corrupt !== null) this.#context.emit({ type: 'corrupt-record', key, cause: corrupt })
    return record
  }

  async #create(key: string, data: string, life: number, deadline: number): Promise<boolean> {
    const now = this.#context.now()
    const record = noteRecord(key, data, now, now + life)
    return (await this.#context.calls.create(record, { now, deadline })) === 'created'
  }
}
