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
  /** The cookie's name: two libraries of one service may give the same ID. */
  readonly #source: string

  constructor(source: string) {
    this.#source = source
  }

  /** `undefined` if the session was not imported. A note that cannot be read counts as `OVER`: the user logs in again. */
  async read(context: Context, id: string): Promise<Note | typeof OVER | undefined> {
    const record = await readNote(context, this.#keyOf(context, 'session', id))
    if (record === null) return undefined
    const [, key, salt] = TEXT.exec(record.data) ?? []
    return key === undefined || salt === undefined ? OVER : { key, salt }
  }

  /** Writes the note of a live old session; `false` if there is one already. */
  create(context: Context, id: string, note: Note | typeof OVER, old: OldSession<unknown>): Promise<boolean> {
    const text = note === OVER ? String(context.now()) : `${note.key} ${note.salt}`
    return createNote(context, this.#keyOf(context, 'session', id), text, lifeFor(context, old))
  }

  /** Whether the user's old sessions were ended: all of them but those that are known to have begun later. */
  async hasUserEnded(context: Context, user: string, begun: number | null): Promise<boolean> {
    const record = await readNote(context, this.#keyOf(context, 'user', user))
    return record !== null && !((begun ?? 0) > Number(record.data) + CLOCK_TOLERANCE)
  }

  /** An earlier end gives way. A session that begins between both steps is ended by the manager's `invalidateUser` afterwards. */
  async endUser(context: Context, user: string): Promise<void> {
    const key = this.#keyOf(context, 'user', user)
    const now = context.now()
    while (!(await createNote(context, key, String(now), LONGEST))) await context.calls.delete(key, context.call(now))
  }

  #keyOf({ keySpace }: Context, kind: 'session' | 'user', name: string): SessionKey {
    return keyOf(hashOf(`${kind}\0${this.#source}\0${name}`), `import\0${keySpace}`)
  }
}

/**
 * As long as the old record could live and as long again, at least as long as a session here, and a day: a late write of
 * the old service begins the record's time anew.
 */
function lifeFor({ options }: Context, { createdAt, seenAt, expiresAt }: OldSession<unknown>): number {
  const begun = seenAt ?? createdAt ?? null
  const life = begun === null || expiresAt == null ? LONGEST : expiresAt - begun
  return Math.min(LONGEST, Math.max(2 * life, options.absolute) + DAY)
}

/** A note counts as long as it is stored, also if it has expired and was not swept yet: its key is taken until then. */
async function readNote(context: Context, key: SessionKey): Promise<SessionRecord | null> {
  const { record, corrupt } = await context.calls.read(key, context.call(0))
  if (corrupt !== null) context.emit({ type: 'corrupt-record', key, cause: corrupt })
  return record
}

/** Writes a note that lives for so many ms; `false` if something is there. */
export async function createNote(context: Context, key: string, data: string, life: number): Promise<boolean> {
  const call = context.call()
  return (await context.calls.create(noteRecord(key, data, call.now, call.now + life), call)) === 'created'
}
