import { SessionStoreError } from '../../src/contract/errors.ts'
import {
  type CreateOutcome,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type ReadAnswer,
  type RecordChange,
  type ReplaceOptions,
  type ReplaceOutcome,
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from '../../src/contract/store.ts'
import { checkOptions, type OptionsOf, wholeNumber } from '../../src/text/check-options.ts'

/** Options of a `MemoryStore`. */
export interface MemoryStoreOptions {
  /**
   * Keeps at most this many records. A session, a remember token and, for some minutes, the forward that a new ID leaves
   * count as one each.
   *
   * @default 100_000
   */
  maxRecords?: number
}

const OPTIONS: OptionsOf<MemoryStoreOptions> = {
  where: 'MemoryStore',
  rules: { maxRecords: wholeNumber(1) },
}

/** The store's own copy of a record. */
type Kept = { -readonly [Field in keyof SessionRecord]: SessionRecord[Field] }
/** A forward as it is kept under the old key. */
type Trace = Forward & { readonly kind: 'forward'; readonly key: string; readonly expiresAt: number }
type Entry = Kept | Trace

/** Entries that expire within the same ten seconds share a Set. */
const SPAN = 10_000
/** How many live entries of one span are looked at. */
const MAX_LIVE = 64
/** A sweep stops after this time, in ms; the manager calls it again. */
const SWEEP_TIME = 5

const spanOf = ({ expiresAt }: Entry) => expiresAt - (expiresAt % SPAN)
/** A copy, if the text may be a part of a longer one: V8 would keep that alive. It copies less than 13 characters itself. */
const copied = <T extends string | null>(text: T) =>
  text === null || text.length < 13 ? text : (Buffer.from(text).toString() as T)

/**
 * Keeps sessions in the memory of this process: for one process, for tests and development.
 *
 * It is bounded: when it holds `maxRecords`, expired records make room for a new one, then the oldest anonymous
 * sessions (a thousandth of the store at once). If neither is left, the call rejects with a `SessionStoreError`
 * (`'not-applied'`) whose cause names the option: no user is logged out for a new session. Minimum password versions (one
 * small object for each user who changed the password within a day) are not counted. It sets no timer.
 *
 * @throws TypeError for a `maxRecords` that is not a whole number above 0
 */
export class MemoryStore implements Store {
  readonly #max: number
  #size = 0
  /** All entries by key. A page of `scan` is one part or more of it, so that a walk needs no state here. */
  readonly #entries = new Parts<Entry>()
  /** Each user's records. */
  readonly #users = new Parts<Group<Kept>>()
  /** The anonymous sessions, oldest first. */
  readonly #anonymous = new Set<Entry>()
  /** Entries by the beginning of the ten seconds in which they expire. */
  readonly #spans = new Map<number, Group<Entry>>()
  /** The minimum password versions; the latest raised last. */
  readonly #minimums = new Map<string, { readonly version: number; readonly until: number }>()

  /**
   * @throws TypeError for an option of the wrong kind
   * @example
   * const sessions = new SessionManager({ store: new MemoryStore({ maxRecords: 10_000 }) })
   */
  constructor(options: MemoryStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    this.#max = options.maxRecords ?? 100_000
  }

  async create(record: SessionRecord, { now }: StoreCall): Promise<CreateOutcome> {
    const taken = this.#find(record.key)
    if (taken !== undefined) return isRepetition(taken, record) ? 'created' : 'collision'
    return this.#admit(record, undefined, now, null)
  }

  read(key: string, { now }: StoreCall): ReadAnswer | Promise<ReadAnswer> {
    const entry = this.#find(key)
    if (entry === undefined || entry.expiresAt <= now) return null
    return entry.kind === 'forward' ? { movedTo: entry.movedTo, salt: entry.salt, until: entry.until } : { ...entry }
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    const record = this.#live(key, now)
    if (record === null) return 'gone'
    if (record.version !== version)
      return record.version === version + 1 && record.writeId === change.writeId ? 'updated' : 'conflict'
    record.data = change.data
    record.writeId = change.writeId
    record.version = version + 1
    this.#extend(record, change.seenAt, change.expiresAt)
    return 'updated'
  }

  async touch(key: string, seenAt: number, expiresAt: number, { now }: StoreCall): Promise<'touched' | 'gone'> {
    const record = this.#live(key, now)
    if (record === null) return 'gone'
    this.#extend(record, seenAt, expiresAt)
    return 'touched'
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    { forward }: ReplaceOptions,
    { now }: StoreCall,
  ): Promise<ReplaceOutcome> {
    const taken = this.#find(record.key)
    if (taken !== undefined && isRepetition(taken, record)) return 'created'
    const old = this.#live(oldKey, now)
    if (old === null) return 'gone'
    if (old.version !== oldVersion) return 'conflict'
    if (taken !== undefined) return 'collision'
    return this.#admit(record, forward, now, old)
  }

  async delete(key: string, _call: StoreCall): Promise<boolean> {
    let entry = this.#find(key)
    for (; entry?.kind === 'forward'; entry = this.#find(entry.movedTo)) this.#drop(entry)
    if (entry === undefined) return false
    this.#drop(entry)
    return true
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now }: StoreCall): Promise<number> {
    this.#raiseMinimum(userId, options, now)
    const spared = this.#successor(options.exceptKey)
    let ended = 0
    for (const record of membersOf(this.#users.of(userId).get(userId) ?? new Set<Kept>())) {
      if (record === spared) continue
      if (isLive(record, 'session', now)) ended++
      this.#drop(record)
    }
    return ended
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now }: StoreCall): Promise<SessionRecord[]> {
    const records = [...membersOf(this.#users.of(userId).get(userId) ?? new Set<Kept>())]
    return records.filter(record => isLive(record, kind, now)).map(record => ({ ...record }))
  }

  async sweep(limit: number, { now }: StoreCall): Promise<number> {
    const before = now - SWEEP_MARGIN
    const stopAt = performance.now() + SWEEP_TIME
    let removed = 0
    for (const [userId, { until }] of this.#minimums) {
      if (until >= before || removed === limit) break
      this.#minimums.delete(userId)
      removed++
    }
    for (const entry of this.#expiredBefore(before)) {
      if (removed === limit || (removed > 0 && performance.now() > stopAt)) break
      this.#drop(entry)
      removed++
    }
    return removed
  }

  async scan(cursor: string | null, limit: number, { now }: StoreCall): Promise<ScanPage> {
    const { parts } = this.#entries
    let index = Number(cursor)
    if (cursor !== null && (String(index) !== cursor || parts[index] === undefined))
      throw new TypeError('cursor: expected null, or the next of the page before')
    const records: SessionRecord[] = []
    const forwards: string[] = []
    for (; index < parts.length && records.length + forwards.length < limit; index++)
      for (const entry of parts[index]!.values()) {
        if (entry.kind === 'forward') forwards.push(entry.key)
        else if (entry.expiresAt > now) records.push({ ...entry })
      }
    return { records, forwards, next: index < parts.length ? String(index) : null }
  }

  async count({ now }: StoreCall): Promise<number> {
    let count = 0
    for (const part of this.#entries.parts)
      for (const entry of part.values()) if (isLive(entry, 'session', now)) count++
    return count
  }

  // The part that `create` and `replace` share. Everything is decided before anything changes.
  #admit(record: SessionRecord, forward: ReplaceOptions['forward'], now: number, old: Kept | null): CreateOutcome {
    const { userId, parent } = record
    const minimum = userId === null ? undefined : this.#minimums.get(userId)
    if (minimum !== undefined && minimum.until > now && minimum.version > (record.passwordVersion ?? 0))
      return 'stale-login'
    if (parent !== null && parent !== old?.parent && this.#live(parent, now) === null) return 'orphan'
    // A forward takes the place of the old record.
    this.#makeRoom(old !== null && forward === undefined ? 0 : 1, now, old)
    if (old !== null) this.#drop(old)
    if (old !== null && forward !== undefined) {
      const expiresAt = Math.max(now, forward.until) + FORWARD_LIFETIME
      this.#keep({ ...forward, kind: 'forward', key: old.key, movedTo: record.key, expiresAt })
    }
    this.#keep({ ...record, userId: copied(userId), userName: copied(record.userName) })
    return 'created'
  }

  #makeRoom(wanted: number, now: number, spared: Kept | null): void {
    if (this.#size + wanted <= this.#max) return
    // Several at once: finding the first entry of a Set is slow after many deletions.
    const room = Math.max(wanted, Math.ceil(this.#max / 1000))
    for (const entries of [this.#expiredBefore(now + 1), this.#anonymous])
      for (const entry of entries) {
        if (this.#size + room <= this.#max) return
        if (entry !== spared) this.#drop(entry)
      }
    if (this.#size + wanted <= this.#max) return
    throw new SessionStoreError(spared === null ? 'create' : 'replace', 'not-applied', 'the session store is full', {
      cause: new Error(`maxRecords is ${this.#max}: all are sessions of users, remember tokens and traces of old IDs`),
    })
  }

  #find(key: string): Entry | undefined {
    return this.#entries.of(key).get(key)
  }

  #live(key: string, now: number): Kept | null {
    const entry = this.#find(key)
    return entry === undefined || entry.kind === 'forward' || entry.expiresAt <= now ? null : entry
  }

  #successor(key: string | undefined): Entry | undefined {
    let entry = key === undefined ? undefined : this.#find(key)
    while (entry?.kind === 'forward') entry = this.#find(entry.movedTo)
    return entry
  }

  #extend(record: Kept, seenAt: number, expiresAt: number): void {
    record.seenAt = Math.max(record.seenAt, seenAt)
    const before = spanOf(record)
    record.expiresAt = Math.max(record.expiresAt, Math.min(expiresAt, record.absoluteExpiresAt))
    if (spanOf(record) === before) return
    leave(this.#spans, before, record)
    join(this.#spans, spanOf(record), record)
  }

  #keep(entry: Entry): void {
    this.#entries.of(entry.key).set(entry.key, entry)
    this.#size++
    join(this.#spans, spanOf(entry), entry)
    if (entry.kind === 'forward') return
    if (entry.userId !== null) join(this.#users.of(entry.userId), entry.userId, entry)
    // A record of another kind without a user, such as the note of an imported session, is never dropped for a visitor.
    else if (entry.kind === 'session') this.#anonymous.add(entry)
  }

  #drop(entry: Entry): void {
    this.#entries.of(entry.key).delete(entry.key)
    this.#size--
    leave(this.#spans, spanOf(entry), entry)
    if (entry.kind === 'forward') return
    if (entry.userId !== null) leave(this.#users.of(entry.userId), entry.userId, entry)
    else this.#anonymous.delete(entry)
  }

  /** Entries that expired before this instant. Of the span that holds the instant, the first 64 live ones are passed by. */
  *#expiredBefore(instant: number): Generator<Entry> {
    for (const [begin, entries] of this.#spans) {
      if (begin >= instant) continue
      let live = 0
      for (const entry of membersOf(entries)) {
        if (entry.expiresAt < instant) yield entry
        else if (++live === MAX_LIVE) break
      }
    }
  }

  #raiseMinimum(userId: string, options: DeleteUserOptions, now: number): void {
    let { minPasswordVersion: version, minPasswordVersionUntil: until } = options
    if (version === undefined) return
    const held = this.#minimums.get(userId)
    if (held !== undefined && held.until > now) {
      version = Math.max(version, held.version)
      until = Math.max(until, held.until)
    }
    // Deleted first: it must become the last one.
    this.#minimums.delete(userId)
    this.#minimums.set(copied(userId), { version, until })
  }
}

/** Maps that are one together. Each is so small that the process does not stop while it grows or shrinks. */
class Parts<V> {
  readonly parts = Array.from({ length: 256 }, () => new Map<string, V>())

  /** The part of a key: keys of sessions and IDs of users differ in their last characters. */
  of(key: string): Map<string, V> {
    const end = key.length - 1
    return this.parts[(key.charCodeAt(end) + 7 * key.charCodeAt(end - 1) + 31 * key.charCodeAt(end - 2)) & 255]!
  }
}

/** Entries under one name: one alone, as most users have, or a Set, which would cost that one 150 bytes. */
type Group<T> = T | Set<T>
const membersOf = <T>(group: Group<T>): Iterable<T> => (group instanceof Set ? group : [group])

function join<Name, T>(groups: Map<Name, Group<T>>, name: Name, entry: T): void {
  const group = groups.get(name)
  if (group instanceof Set) group.add(entry)
  else groups.set(name, group === undefined ? entry : new Set([group, entry]))
}

function leave<Name, T>(groups: Map<Name, Group<T>>, name: Name, entry: T): void {
  const group = groups.get(name)
  if (group instanceof Set && group.size > 1) group.delete(entry)
  else groups.delete(name)
}

const isLive = (entry: Entry, kind: SessionRecord['kind'], now: number) => entry.kind === kind && entry.expiresAt > now

/** Whether a repeated call finds its own write. */
const isRepetition = (taken: Entry, { writeId, userId, createdAt }: SessionRecord) =>
  taken.kind !== 'forward' && taken.writeId === writeId && taken.userId === userId && taken.createdAt === createdAt
