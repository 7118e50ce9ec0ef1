import { SessionStoreError } from '../../src/contract/errors.ts'
import {
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type ReadAnswer,
  type RecordChange,
  type ReplaceResult,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from '../../src/contract/store.ts'
import { checkOptions, type OptionPlace, wholeNumber } from '../../src/text/check-options.ts'
import { Calendar, Dated } from './calendar.ts'
import { WideMap } from './wide-map.ts'

/** What a `MemoryStore` takes. */
export interface MemoryStoreOptions {
  /**
   * Records kept at most; a session, a remember-me series and, for its seven minutes, a forward count as one each.
   *
   * @default 100_000
   */
  maxRecords?: number
}

const OPTIONS: OptionPlace<MemoryStoreOptions> = {
  where: 'MemoryStore',
  rules: { maxRecords: wholeNumber(1) },
  // Options of other memory stores for sessions, and what to do here instead.
  hints: {
    max: 'it is called maxRecords',
    maxSessions: 'it is called maxRecords: remember-me series and forwards count as well',
    ttl: 'a session lives as the manager says: idleTimeout and absoluteTimeout',
    checkPeriod: 'what has expired is removed by the sweep of the manager: sweepInterval',
  },
}

/** How many records of a user end in one turn of the event loop. */
const END_BATCH = 1000

// One object per record, linked in a ring with the others of its user, oldest first; the anonymous ones have a ring too.
// A Set per user would take more memory than the session itself, and most users have just one.
class Kept extends Dated {
  record: Readonly<SessionRecord>
  older: Kept = this
  newer: Kept = this
  constructor(record: Readonly<SessionRecord>) {
    super()
    this.record = record
  }
  get due(): number {
    return this.record.expiresAt
  }
}

class Moved extends Dated {
  readonly key: string
  readonly forward: Forward
  readonly due: number
  constructor(key: string, forward: Forward, due: number) {
    super()
    this.key = key
    this.forward = forward
    this.due = due
  }
}

class Floor extends Dated {
  readonly userId: string
  passwordVersion: number
  due: number
  constructor(userId: string, passwordVersion: number, due: number) {
    super()
    this.userId = userId
    this.passwordVersion = passwordVersion
    this.due = due
  }
}

// Field by field: all records have one shape, and the store keeps no object that the caller can change.
const frozen = (r: SessionRecord): Readonly<SessionRecord> =>
  Object.freeze({
    key: r.key,
    kind: r.kind,
    parent: r.parent,
    userId: r.userId,
    username: r.username,
    passwordVersion: r.passwordVersion,
    data: r.data,
    version: r.version,
    writeId: r.writeId,
    createdAt: r.createdAt,
    seenAt: r.seenAt,
    expiresAt: r.expiresAt,
    absoluteExpiresAt: r.absoluteExpiresAt,
  })

const NONE: readonly string[] = Object.freeze([])
const answer = <O extends string>(outcome: O, ended: readonly string[] = NONE) => ({ outcome, ended })

/**
 * Keeps sessions in the memory of this process: for one process, for tests and development.
 *
 * It is bounded: at `maxRecords`, a new record takes the place of an expired one, else of the oldest anonymous session.
 * Where users' live sessions take all of it, the call rejects with a `SessionStoreError` (`'not-applied'`) whose cause
 * names the option: no user is logged out for a new session. Password floors (one small object for each user who changed
 * the password within a day) are not counted. Records that are read are frozen. It sets no timer.
 *
 * @throws TypeError for a `maxRecords` that is not a whole number above 0
 */
export class MemoryStore implements Store {
  readonly #max: number
  readonly #entries = new WideMap<Kept | Moved>()
  readonly #users = new WideMap<Kept>()
  readonly #floors = new Map<string, Floor>()
  readonly #calendar = new Calendar<Kept | Moved | Floor>()
  #size = 0
  #oldestAnonymous: Kept | undefined

  constructor(options: MemoryStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    this.#max = options.maxRecords ?? 100_000
  }

  async create(record: SessionRecord, options: CreateOptions, { now }: StoreCall): Promise<CreateResult> {
    const taken = this.#entries.get(record.key)
    if (taken !== undefined) return answer(isRepetition(taken, record) ? 'created' : 'collision')
    return this.#admit('create', record, options, now, undefined)
  }

  /** At once; the type allows a promise, so that a subclass may override it with an async method. */
  read(key: string, { now }: StoreCall): ReadAnswer | Promise<ReadAnswer> {
    const entry = this.#entries.get(key)
    if (entry instanceof Kept) return entry.record.expiresAt > now ? entry.record : null
    return entry !== undefined && entry.due > now ? entry.forward : null
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    const kept = this.#live(key, now)
    if (kept === undefined) return 'gone'
    const { record } = kept
    if (record.version !== version)
      return record.version === version + 1 && record.writeId === change.writeId ? 'updated' : 'conflict'
    const { data, writeId, seenAt, expiresAt } = change
    this.#rewrite(kept, { ...record, data, writeId, version: version + 1 }, seenAt, expiresAt)
    return 'updated'
  }

  async touch(key: string, seenAt: number, expiresAt: number, { now }: StoreCall): Promise<'touched' | 'gone'> {
    const kept = this.#live(key, now)
    if (kept === undefined) return 'gone'
    this.#rewrite(kept, kept.record, seenAt, expiresAt)
    return 'touched'
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    { now }: StoreCall,
  ): Promise<ReplaceResult> {
    const taken = this.#entries.get(record.key)
    if (taken !== undefined && isRepetition(taken, record)) return answer('created')
    const old = this.#live(oldKey, now)
    if (old === undefined) return answer('gone')
    if (old.record.version !== oldVersion) return answer('conflict')
    if (taken !== undefined) return answer('collision')
    return this.#admit('replace', record, options, now, old)
  }

  async delete(key: string, _call: StoreCall): Promise<boolean> {
    let entry = this.#entries.get(key)
    while (entry instanceof Moved) {
      this.#drop(entry)
      entry = this.#entries.get(entry.forward.movedTo)
    }
    if (entry === undefined) return false
    this.#drop(entry)
    return true
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now, deadline }: StoreCall): Promise<number> {
    const { passwordVersion, floorUntil } = options
    if (passwordVersion !== undefined) this.#raiseFloor(userId, passwordVersion, floorUntil)
    let ended = 0
    for (;;) {
      // Looked up for each piece: the excepted session may rotate its ID in between.
      const piece = this.#oldestOf(userId, END_BATCH, this.#successor(options.exceptKey))
      for (const kept of piece) {
        if (kept.record.kind === 'session' && kept.record.expiresAt > now) ended++
        this.#drop(kept)
      }
      // A piece that is not full was all there was: also what replaced sessions of earlier pieces has ended.
      if (piece.length < END_BATCH) return ended
      await new Promise(resolve => setImmediate(resolve))
      if (deadline !== undefined && performance.now() >= deadline)
        throw new SessionStoreError('deleteUser', 'unknown', 'the session store failed in deleteUser', {
          cause: new Error('the deadline passed before all sessions of the user were ended'),
        })
    }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now }: StoreCall): Promise<SessionRecord[]> {
    return this.#liveOf(userId, kind, now).map(kept => kept.record)
  }

  async sweep(limit: number, { now }: StoreCall): Promise<number> {
    let removed = 0
    for (; removed < limit; removed++) {
      const past = this.#calendar.dueBefore(now - SWEEP_MARGIN)
      if (past === undefined) break
      this.#drop(past)
    }
    return removed
  }

  // The part that `create` and `replace` share. Everything is decided before anything changes.
  #admit(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    now: number,
    old: Kept | undefined,
  ): CreateResult {
    const { limit, forward } = options
    if (record.userId !== null) {
      const floor = this.#floors.get(record.userId)
      if (floor !== undefined && floor.due > now && floor.passwordVersion > (record.passwordVersion ?? 0))
        return answer('stale-login')
    }
    if (record.parent !== null && old?.record.parent !== record.parent && this.#live(record.parent, now) === undefined)
      return answer('orphan')
    let surplus: Kept[] = []
    if (limit !== undefined && record.userId !== null && record.kind === 'session') {
      const others = this.#liveOf(record.userId, 'session', now).filter(kept => kept !== old)
      const excess = others.length + 1 - limit.max
      if (excess > 0 && limit.onLimit === 'refuse') return answer('limit')
      if (excess > 0) surplus = others.sort((a, b) => a.record.createdAt - b.record.createdAt).slice(0, excess)
    }

    const added = old !== undefined && forward !== undefined ? 2 : 1
    const removed = surplus.length + (old === undefined ? 0 : 1)
    this.#makeRoom(operation, added - removed, now, old)
    for (const kept of surplus) this.#drop(kept)
    if (old !== undefined) {
      this.#drop(old)
      if (forward !== undefined) {
        const due = Math.max(now, forward.until) + FORWARD_LIFETIME
        const to = Object.freeze({ movedTo: record.key, salt: forward.salt, until: forward.until })
        this.#keep(old.record.key, new Moved(old.record.key, to, due))
      }
    }
    const kept = new Kept(frozen(record))
    this.#keep(record.key, kept)
    this.#link(kept)
    return answer(
      'created',
      surplus.map(({ record: { key } }) => key),
    )
  }

  #makeRoom(operation: 'create' | 'replace', wanted: number, now: number, spared: Kept | undefined): void {
    while (wanted > 0 && this.#size + wanted > this.#max) {
      const expired = this.#calendar.dueBefore(now + 1)
      if (expired !== undefined) {
        this.#drop(expired)
        continue
      }
      let victim = this.#oldestAnonymous
      if (victim !== undefined && victim === spared) victim = victim.newer === victim ? undefined : victim.newer
      if (victim === undefined)
        throw new SessionStoreError(operation, 'not-applied', 'the session store is full', {
          cause: new Error(`the memory store is full of users' live sessions: maxRecords is ${this.#max}`),
        })
      this.#drop(victim)
    }
  }

  #live(key: string, now: number): Kept | undefined {
    const entry = this.#entries.get(key)
    return entry instanceof Kept && entry.record.expiresAt > now ? entry : undefined
  }

  #successor(key: string | undefined): Kept | undefined {
    let entry = key === undefined ? undefined : this.#entries.get(key)
    while (entry instanceof Moved) entry = this.#entries.get(entry.forward.movedTo)
    return entry
  }

  #liveOf(userId: string, kind: SessionRecord['kind'], now: number): Kept[] {
    return this.#ring(userId).filter(({ record }) => record.kind === kind && record.expiresAt > now)
  }

  #rewrite(kept: Kept, record: SessionRecord, seenAt: number, expiresAt: number): void {
    const expiry = Math.max(kept.record.expiresAt, Math.min(expiresAt, record.absoluteExpiresAt))
    kept.record = frozen({ ...record, seenAt: Math.max(kept.record.seenAt, seenAt), expiresAt: expiry })
    this.#calendar.move(kept)
  }

  #keep(key: string, entry: Kept | Moved): void {
    this.#entries.set(key, entry)
    this.#calendar.add(entry)
    this.#size++
  }

  #drop(item: Kept | Moved | Floor): void {
    this.#calendar.remove(item)
    if (item instanceof Floor) {
      this.#floors.delete(item.userId)
      return
    }
    this.#size--
    if (item instanceof Moved) this.#entries.delete(item.key)
    else {
      this.#entries.delete(item.record.key)
      this.#unlink(item)
    }
  }

  #ring(userId: string): Kept[] {
    return this.#oldestOf(userId, Number.POSITIVE_INFINITY, undefined)
  }

  #oldestOf(userId: string, count: number, spared: Kept | undefined): Kept[] {
    const ring: Kept[] = []
    const oldest = this.#users.get(userId)
    if (oldest !== undefined) {
      let kept = oldest
      do {
        if (kept !== spared) ring.push(kept)
        kept = kept.newer
      } while (kept !== oldest && ring.length < count)
    }
    return ring
  }

  #link(kept: Kept): void {
    const { userId } = kept.record
    const oldest = userId === null ? this.#oldestAnonymous : this.#users.get(userId)
    if (oldest === undefined) this.#setOldest(userId, kept)
    else {
      kept.older = oldest.older
      kept.newer = oldest
      oldest.older.newer = kept
      oldest.older = kept
    }
  }

  #unlink(kept: Kept): void {
    const { userId } = kept.record
    const alone = kept.newer === kept
    kept.older.newer = kept.newer
    kept.newer.older = kept.older
    const oldest = userId === null ? this.#oldestAnonymous : this.#users.get(userId)
    if (oldest === kept) this.#setOldest(userId, alone ? undefined : kept.newer)
  }

  #setOldest(userId: string | null, kept: Kept | undefined): void {
    if (userId === null) this.#oldestAnonymous = kept
    else if (kept === undefined) this.#users.delete(userId)
    else this.#users.set(userId, kept)
  }

  #raiseFloor(userId: string, passwordVersion: number, until: number): void {
    const floor = this.#floors.get(userId)
    if (floor === undefined) {
      const raised = new Floor(userId, passwordVersion, until)
      this.#floors.set(userId, raised)
      this.#calendar.add(raised)
    } else {
      floor.passwordVersion = Math.max(floor.passwordVersion, passwordVersion)
      floor.due = Math.max(floor.due, until)
      this.#calendar.move(floor)
    }
  }
}

const isRepetition = (taken: Kept | Moved, { writeId, userId, createdAt }: SessionRecord) =>
  taken instanceof Kept &&
  taken.record.writeId === writeId &&
  taken.record.userId === userId &&
  taken.record.createdAt === createdAt
