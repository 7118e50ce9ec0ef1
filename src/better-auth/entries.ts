// The keys of the secondary storage as records of a store. Any store has conditional writes, so each change is made to the
// value that is there at that moment.
import { type SessionRecord, type Store, SWEEP_MARGIN } from '../contract/store.ts'
import { StoreCalls } from '../guard/store-calls.ts'
import { hashOf, keyOf, newWriteId } from '../session/id.ts'
import { LONGEST, noteRecord } from '../session/note.ts'

/** How long a call may take, in ms. */
const TIMEOUT = 5000
/** How many calls may wait for the store. */
const MAX_PENDING = 10_000
/** For how long a mark stays under a key that had no value, in ms: a login that is under way ends within it. */
export const MINUTES = 10 * 60_000

/** The value of a key. */
export interface Entry {
  readonly value: string | null
  /** When the value expires, epoch ms; `null`: not by itself. */
  readonly until: number | null
  /** It was a session that has ended: nothing is written to this key any more. */
  readonly hasEnded?: true
}
export const NOTHING: Entry = { value: null, until: null }

/** The entry to write, or `null` to leave it as it is. Runs again if somebody else has written meanwhile. */
type Edit = (found: Entry) => Entry | null
interface Turn {
  readonly edits: Edit[]
  hasBegun: boolean
  /** What each edit found. */
  made?: Promise<Entry[]>
}

export class Entries {
  readonly #calls: StoreCalls
  readonly #sweeps: boolean
  /** The last turn of each key that is being written. */
  readonly #turns = new Map<string, Turn>()
  #sweptAt = Date.now()

  constructor(store: Store) {
    // A failed call rejects, and better-auth logs it.
    this.#calls = new StoreCalls(store, { storeTimeout: TIMEOUT, maxPendingCalls: MAX_PENDING }, () => {})
    this.#sweeps = store.sweep !== undefined
  }

  async read(key: string): Promise<Entry> {
    return entryOf(await this.#read(keyIn(key), this.#calls.deadline()))
  }

  /**
   * Writes the result of `edit`, and resolves to the entry before. In this process the writers to one key take turns, and all
   * that wait are one turn: so many calls of one client cost the store two commands a turn.
   */
  async change(key: string, edit: Edit): Promise<Entry> {
    const last = this.#turns.get(key)
    const turn = last === undefined || last.hasBegun ? { edits: [], hasBegun: false } : last
    const at = turn.edits.push(edit) - 1
    this.#turns.set(key, turn)
    turn.made ??= this.#make(key, turn, last?.made)
    return (await turn.made)[at]!
  }

  async #make(key: string, turn: Turn, before: Promise<unknown> | undefined): Promise<Entry[]> {
    const deadline = this.#calls.deadline()
    await before?.catch(() => {})
    turn.hasBegun = true
    let found = [NOTHING]
    try {
      for (let tries = 1; ; tries += 1) {
        const record = await this.#read(keyIn(key), deadline)
        found = [entryOf(record)]
        for (const edit of turn.edits) found.push(edit(found.at(-1)!) ?? found.at(-1)!)
        const entry = found.at(-1)!
        if (entry === found[0] || (await this.#write(keyIn(key), record, entry, deadline))) return found
        // Full jitter keeps many writers apart.
        const wait = Math.random() * Math.min(100, 2 ** tries)
        if (performance.now() + wait >= deadline)
          throw this.#calls.fail('update', 'not-applied', 'update: others kept writing to the same key')
        await new Promise(resolve => setTimeout(resolve, wait))
      }
    } catch (error) {
      // A full store still deletes. A late write is the lesser evil for a session; a value for one use would be given twice.
      if (!found.at(-1)!.hasEnded) throw error
      await this.#calls.delete(keyIn(key), { now: Date.now(), deadline })
      return found
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key)
    }
  }

  /** Also a record that has expired and was not swept yet: its key is taken until then. */
  async #read(key: string, deadline: number): Promise<SessionRecord | null> {
    return (await this.#calls.read(key, { now: 0, deadline })).record
  }

  /** `false` if somebody else was faster. */
  async #write(key: string, before: SessionRecord | null, entry: Entry, deadline: number): Promise<boolean> {
    const now = Date.now()
    const data = JSON.stringify(entry)
    // What has no value any more is kept for no longer than the value was.
    const emptyUntil = before?.expiresAt ?? now + MINUTES
    const expiresAt = entry.value === null ? emptyUntil : Math.min(entry.until ?? Infinity, now + LONGEST)
    if (before === null) {
      const record = noteRecord(key, data, now, Math.max(expiresAt, now + 1))
      this.#sweep(now)
      return (await this.#calls.create(record, { now, deadline })) === 'created'
    }
    // With a clock at which the record has not expired: only its version decides.
    const call = { now: Math.min(now, before.expiresAt - 1), deadline }
    const change = { data, seenAt: now, expiresAt, writeId: newWriteId() }
    return (await this.#calls.update(key, before.version, change, call)) === 'updated'
  }

  /** There is no manager that does it. */
  #sweep(now: number): void {
    if (!this.#sweeps || now - this.#sweptAt < SWEEP_MARGIN) return
    this.#sweptAt = now
    // If it fails, the next sweep removes them.
    this.#calls.sweep(1000, { now, deadline: this.#calls.deadline() }).catch(() => {})
  }
}

/** A session's token is its key: a store holds the hash. */
const keyIn = (key: string) => keyOf(hashOf(key), 'better-auth')

function entryOf(record: SessionRecord | null): Entry {
  if (record === null) return NOTHING
  const entry = JSON.parse(record.data) as Entry
  return entry.until !== null && entry.until <= Date.now() ? { ...entry, value: null, until: null } : entry
}
