import { setImmediate } from 'node:timers'
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
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from '../../src/contract/store.ts'
import { checkOptions, type OptionPlace, wholeNumber } from '../../src/text/check-options.ts'
import { Calendar } from './calendar.ts'
import { KeyIndex, PLACES } from './key-index.ts'
import {
  ABSOLUTE_EXPIRES_AT,
  CREATED_AT,
  DATA,
  EXPIRES_AT,
  KEY,
  KIND,
  NEWER,
  NONE,
  OLDER,
  PARENT,
  PASSWORD_VERSION,
  SEEN_AT,
  Slots,
  USER_ID,
  USERNAME,
  VERSION,
  WRITE_ID,
} from './slots.ts'
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
/** How many records are counted in one turn of the event loop. */
const COUNT_BATCH = 10_000
const PLACE = /^\d{1,10}$/

// What a slot holds; a record is of one of the first two kinds.
const KINDS = ['session', 'remember'] as const
const SESSION = 0
const FORWARD = 2
const FLOOR = 3
// A forward has no data, and its grace is over at a moment of its own.
const MOVED_TO = PARENT
const SALT = DATA
const UNTIL = SEEN_AT

const nextTurn = () => new Promise(resolve => setImmediate(resolve))
const isOver = (deadline: number | undefined) => deadline !== undefined && performance.now() >= deadline

const NOTHING: readonly string[] = Object.freeze([])
const answer = <O extends string>(outcome: O, ended: readonly string[] = NOTHING) => ({ outcome, ended })

/**
 * Keeps sessions in the memory of this process: for one process, for tests and development.
 *
 * It is bounded: at `maxRecords`, a new record takes the place of an expired one, else of the oldest anonymous session.
 * Where nothing of the kind is left, the call rejects with a `SessionStoreError` (`'not-applied'`) whose cause names the
 * option: no user is logged out for a new session, and no mark of a logout is dropped. Password floors (one small object
 * for each user who changed the password within a day) are not counted. Each reader gets an object of its own. It sets no timer.
 *
 * @throws TypeError for a `maxRecords` that is not a whole number above 0
 */
export class MemoryStore implements Store {
  readonly #max: number
  readonly #slots = new Slots()
  /** Records and forwards. */
  readonly #entries = new KeyIndex(this.#slots)
  /** The oldest record of each user. Users may have chosen the text: unlike our index, a Map hashes it with a secret. */
  readonly #users = new WideMap<number>()
  readonly #floors = new Map<string, number>()
  readonly #calendar = new Calendar(this.#slots)
  #size = 0
  #oldestAnonymous = NONE

  constructor(options: MemoryStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    this.#max = options.maxRecords ?? 100_000
  }

  async create(record: SessionRecord, options: CreateOptions, { now }: StoreCall): Promise<CreateResult> {
    const taken = this.#entries.find(record.key)
    if (taken !== NONE) return answer(this.#isRepetition(taken, record) ? 'created' : 'collision')
    return this.#admit('create', record, options, now, NONE)
  }

  /** At once; the type allows a promise, so that a subclass may override it with an async method. */
  read(key: string, { now }: StoreCall): ReadAnswer | Promise<ReadAnswer> {
    const slot = this.#entries.find(key)
    if (slot === NONE || this.#slots.number(slot, EXPIRES_AT) <= now) return null
    return this.#slots.link(slot, KIND) === FORWARD ? this.#forwardIn(slot) : this.#recordIn(slot, key)
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    const slot = this.#live(key, now)
    if (slot === NONE) return 'gone'
    const slots = this.#slots
    const current = slots.number(slot, VERSION)
    if (current !== version)
      return current === version + 1 && slots.text(slot, WRITE_ID) === change.writeId ? 'updated' : 'conflict'
    slots.setData(slot, change.data)
    slots.setWriteId(slot, change.writeId)
    slots.setNumber(slot, VERSION, version + 1)
    this.#see(slot, change.seenAt, change.expiresAt)
    return 'updated'
  }

  async touch(key: string, seenAt: number, expiresAt: number, { now }: StoreCall): Promise<'touched' | 'gone'> {
    const slot = this.#live(key, now)
    if (slot === NONE) return 'gone'
    this.#see(slot, seenAt, expiresAt)
    return 'touched'
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    { now }: StoreCall,
  ): Promise<ReplaceResult> {
    const taken = this.#entries.find(record.key)
    if (taken !== NONE && this.#isRepetition(taken, record)) return answer('created')
    const old = this.#live(oldKey, now)
    if (old === NONE) return answer('gone')
    if (this.#slots.number(old, VERSION) !== oldVersion) return answer('conflict')
    if (taken !== NONE) return answer('collision')
    return this.#admit('replace', record, options, now, old)
  }

  async delete(key: string, _call: StoreCall): Promise<boolean> {
    this.#settle(2)
    let slot = this.#entries.find(key)
    while (slot !== NONE && this.#slots.link(slot, KIND) === FORWARD) {
      const next = this.#slots.text(slot, MOVED_TO)!
      this.#drop(slot)
      slot = this.#entries.find(next)
    }
    if (slot === NONE) return false
    this.#drop(slot)
    return true
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now, deadline }: StoreCall): Promise<number> {
    const { minPasswordVersion: passwordVersion, minPasswordVersionUntil } = options
    if (passwordVersion !== undefined) this.#raiseFloor(userId, passwordVersion, minPasswordVersionUntil)
    let ended = 0
    for (;;) {
      // Looked up for each piece: the excepted session may rotate its ID in between.
      const piece = this.#oldestOf(userId, END_BATCH, this.#successor(options.exceptKey))
      for (const slot of piece) {
        if (this.#isLive(slot, SESSION, now)) ended++
        this.#drop(slot)
      }
      this.#settle(piece.length)
      // A piece that is not full was all there was: also what replaced sessions of earlier pieces has ended.
      if (piece.length < END_BATCH) return ended
      await nextTurn()
      if (isOver(deadline))
        throw new SessionStoreError('deleteUser', 'unknown', 'the session store failed in deleteUser', {
          cause: new Error('the deadline passed before all sessions of the user were ended'),
        })
    }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now }: StoreCall): Promise<SessionRecord[]> {
    return this.#liveOf(userId, KINDS.indexOf(kind), now).map(slot => this.#recordIn(slot))
  }

  async sweep(limit: number, { now }: StoreCall): Promise<number> {
    let removed = 0
    for (; removed < limit; removed++) {
      const past = this.#calendar.dueBefore(now - SWEEP_MARGIN)
      if (past === undefined) break
      this.#drop(past)
    }
    // While there is more to remove, most of what would move may go next.
    this.#settle(removed < limit ? limit : limit / 4)
    return removed
  }

  async scan(cursor: string | null, limit: number, { now }: StoreCall): Promise<ScanPage> {
    if (cursor !== null && !PLACE.test(cursor)) throw new TypeError('cursor: expected what an earlier page answered')
    const { met, next } = this.#entries.from(Number(cursor), limit)
    const [records, forwards]: [SessionRecord[], string[]] = [[], []]
    for (const slot of met) {
      if (this.#slots.link(slot, KIND) === FORWARD) forwards.push(this.#slots.text(slot, KEY)!)
      else if (this.#slots.number(slot, EXPIRES_AT) > now) records.push(this.#recordIn(slot))
    }
    return { records, forwards, next: next < PLACES ? `${next}` : null }
  }

  async count({ now, deadline }: StoreCall): Promise<number> {
    let count = 0
    let place = 0
    for (;;) {
      const { met, next } = this.#entries.from(place, COUNT_BATCH)
      for (const slot of met) if (this.#isLive(slot, SESSION, now)) count++
      if (next >= PLACES) return count
      place = next
      await nextTurn()
      if (isOver(deadline))
        throw new SessionStoreError('count', 'not-applied', 'the session store failed in count', {
          cause: new Error('the deadline passed before all sessions were counted'),
        })
    }
  }

  // The part that `create` and `replace` share. Everything is decided before anything changes.
  #admit(
    operation: 'create' | 'replace',
    record: SessionRecord,
    options: CreateOptions,
    now: number,
    old: number,
  ): CreateResult {
    const slots = this.#slots
    const { limit, forward } = options
    const { userId, parent } = record
    if (userId !== null) {
      const floor = this.#floors.get(userId)
      if (
        floor !== undefined &&
        slots.number(floor, EXPIRES_AT) > now &&
        slots.number(floor, PASSWORD_VERSION) > (record.passwordVersion ?? 0)
      )
        return answer('stale-login')
    }
    const isContinued = old !== NONE && slots.text(old, PARENT) === parent
    if (parent !== null && !isContinued && this.#live(parent, now) === NONE) return answer('orphan')
    let surplus: number[] = []
    if (limit !== undefined && userId !== null && record.kind === 'session') {
      const others = this.#liveOf(userId, SESSION, now).filter(slot => slot !== old)
      const excess = others.length + 1 - limit.max
      if (excess > 0 && limit.onLimit === 'refuse') return answer('limit')
      const age = (slot: number) => slots.number(slot, CREATED_AT)
      if (excess > 0) surplus = others.sort((a, b) => age(a) - age(b)).slice(0, excess)
    }

    const added = old !== NONE && forward !== undefined ? 2 : 1
    const removed = surplus.length + (old === NONE ? 0 : 1)
    this.#makeRoom(operation, added - removed, now, old)
    const ended = surplus.map(slot => slots.text(slot, KEY)!)
    for (const slot of surplus) this.#drop(slot)
    if (old !== NONE) {
      const oldKey = slots.text(old, KEY)!
      this.#drop(old)
      if (forward !== undefined) this.#keepForward(oldKey, record.key, forward, now)
    }
    this.#keepRecord(record)
    return answer('created', ended)
  }

  #makeRoom(operation: 'create' | 'replace', wanted: number, now: number, spared: number): void {
    while (wanted > 0 && this.#size + wanted > this.#max) {
      const expired = this.#calendar.dueBefore(now + 1)
      if (expired !== undefined) {
        this.#drop(expired)
        continue
      }
      let victim = this.#oldestAnonymous
      if (victim !== NONE && victim === spared) {
        const next = this.#slots.link(victim, NEWER)
        victim = next === victim ? NONE : next
      }
      if (victim === NONE)
        throw new SessionStoreError(operation, 'not-applied', 'the session store is full', {
          cause: new Error(
            `the memory store is full of what must not go (users' sessions, remember tokens, the traces of old IDs): maxRecords is ${this.#max}`,
          ),
        })
      this.#drop(victim)
    }
  }

  #isRepetition(taken: number, { writeId, userId, createdAt }: SessionRecord): boolean {
    const slots = this.#slots
    return (
      slots.link(taken, KIND) !== FORWARD &&
      slots.text(taken, WRITE_ID) === writeId &&
      slots.text(taken, USER_ID) === userId &&
      slots.number(taken, CREATED_AT) === createdAt
    )
  }

  #live(key: string, now: number): number {
    const slot = this.#entries.find(key)
    if (slot === NONE || this.#slots.number(slot, EXPIRES_AT) <= now) return NONE
    return this.#slots.link(slot, KIND) === FORWARD ? NONE : slot
  }

  #successor(key: string | undefined): number {
    let slot = key === undefined ? NONE : this.#entries.find(key)
    while (slot !== NONE && this.#slots.link(slot, KIND) === FORWARD)
      slot = this.#entries.find(this.#slots.text(slot, MOVED_TO)!)
    return slot
  }

  #isLive(slot: number, kind: number, now: number): boolean {
    return this.#slots.link(slot, KIND) === kind && this.#slots.number(slot, EXPIRES_AT) > now
  }

  #liveOf(userId: string, kind: number, now: number): number[] {
    return this.#oldestOf(userId, Number.POSITIVE_INFINITY, NONE).filter(slot => this.#isLive(slot, kind, now))
  }

  #see(slot: number, seenAt: number, expiresAt: number): void {
    const slots = this.#slots
    slots.setNumber(slot, SEEN_AT, Math.max(slots.number(slot, SEEN_AT), seenAt))
    const latest = Math.min(expiresAt, slots.number(slot, ABSOLUTE_EXPIRES_AT))
    if (latest > slots.number(slot, EXPIRES_AT)) this.#expireAt(slot, latest)
  }

  #expireAt(slot: number, instant: number): void {
    this.#calendar.remove(slot)
    this.#slots.setNumber(slot, EXPIRES_AT, instant)
    this.#calendar.add(slot)
  }

  #recordIn(slot: number, key = this.#slots.text(slot, KEY)!): SessionRecord {
    const slots = this.#slots
    const passwordVersion = slots.number(slot, PASSWORD_VERSION)
    return {
      key,
      kind: KINDS[slots.link(slot, KIND)]!,
      parent: slots.text(slot, PARENT),
      userId: slots.text(slot, USER_ID),
      userName: slots.text(slot, USERNAME),
      passwordVersion: Number.isNaN(passwordVersion) ? null : passwordVersion,
      data: slots.text(slot, DATA)!,
      version: slots.number(slot, VERSION),
      writeId: slots.text(slot, WRITE_ID)!,
      createdAt: slots.number(slot, CREATED_AT),
      seenAt: slots.number(slot, SEEN_AT),
      expiresAt: slots.number(slot, EXPIRES_AT),
      absoluteExpiresAt: slots.number(slot, ABSOLUTE_EXPIRES_AT),
    }
  }

  #keepRecord(record: SessionRecord): void {
    const slots = this.#slots
    const slot = slots.take()
    slots.setLink(slot, KIND, KINDS.indexOf(record.kind))
    slots.setShortTexts(slot, [record.key, record.userId, record.userName, record.parent, record.writeId])
    slots.setData(slot, record.data)
    slots.setNumber(slot, PASSWORD_VERSION, record.passwordVersion ?? Number.NaN)
    slots.setNumber(slot, VERSION, record.version)
    slots.setNumber(slot, CREATED_AT, record.createdAt)
    slots.setNumber(slot, SEEN_AT, record.seenAt)
    slots.setNumber(slot, ABSOLUTE_EXPIRES_AT, record.absoluteExpiresAt)
    this.#keep(slot, record.expiresAt)
    this.#linkUser(slot, record.userId)
  }

  #forwardIn(slot: number): Forward {
    const slots = this.#slots
    return { movedTo: slots.text(slot, MOVED_TO)!, salt: slots.text(slot, SALT)!, until: slots.number(slot, UNTIL) }
  }

  #keepForward(key: string, movedTo: string, { salt, until }: Omit<Forward, 'movedTo'>, now: number): void {
    const slots = this.#slots
    const slot = slots.take()
    slots.setLink(slot, KIND, FORWARD)
    slots.setShortTexts(slot, [key, null, null, movedTo, null])
    slots.setData(slot, salt)
    slots.setNumber(slot, UNTIL, until)
    this.#keep(slot, Math.max(now, until) + FORWARD_LIFETIME)
  }

  #keep(slot: number, expiresAt: number): void {
    this.#slots.setNumber(slot, EXPIRES_AT, expiresAt)
    this.#entries.add(slot)
    this.#calendar.add(slot)
    this.#size++
  }

  #drop(slot: number): void {
    const slots = this.#slots
    const kind = slots.link(slot, KIND)
    this.#calendar.remove(slot)
    if (kind === FLOOR) this.#floors.delete(slots.text(slot, USER_ID)!)
    else {
      this.#size--
      this.#entries.remove(slot)
      if (this.#isInRing(slot)) this.#unlinkUser(slot)
    }
    slots.release(slot)
  }

  // Only where no verb holds a slot: what is left of a peak moves together, and the memory of the peak is given back.
  #settle(steps: number): void {
    for (let step = 0; step < steps; step++) {
      const slot = this.#slots.straggler()
      if (slot === undefined) return
      if (slot !== NONE) this.#move(slot)
    }
  }

  #move(slot: number): void {
    const slots = this.#slots
    const copy = slots.take()
    slots.copy(slot, copy)
    const kind = slots.link(slot, KIND)
    const isStart = this.#calendar.standIn(slot, copy)
    if (kind === FLOOR) this.#floors.set(slots.text(slot, USER_ID)!, copy)
    else if (!isStart) {
      this.#entries.standIn(slot, copy)
      if (this.#isInRing(slot)) this.#moveOfUser(slot, copy)
    }
    slots.release(slot)
  }

  #moveOfUser(slot: number, copy: number): void {
    const userId = this.#slots.text(slot, USER_ID)
    this.#slots.standIn(slot, copy, OLDER, NEWER)
    const oldest = userId === null ? this.#oldestAnonymous : this.#users.get(userId)
    if (oldest === slot) this.#setOldest(userId, copy)
  }

  // The records of a user are a ring, oldest first; the anonymous sessions are a ring too. Most users have just one. A record
  // without a user that is no session, such as the mark of a session that was taken over from another library, is in none:
  // it must not give way to a visitor, since without it what was logged out would come back.
  #isInRing(slot: number): boolean {
    const kind = this.#slots.link(slot, KIND)
    return kind === SESSION || (kind !== FORWARD && this.#slots.text(slot, USER_ID) !== null)
  }

  #oldestOf(userId: string, count: number, spared: number): number[] {
    const ring: number[] = []
    const oldest = this.#users.get(userId)
    if (oldest !== undefined) {
      let slot = oldest
      do {
        if (slot !== spared) ring.push(slot)
        slot = this.#slots.link(slot, NEWER)
      } while (slot !== oldest && ring.length < count)
    }
    return ring
  }

  #linkUser(slot: number, userId: string | null): void {
    if (!this.#isInRing(slot)) return
    const oldest = userId === null ? this.#oldestAnonymous : (this.#users.get(userId) ?? NONE)
    this.#slots.join(slot, oldest, OLDER, NEWER)
    if (oldest === NONE) this.#setOldest(userId, slot)
  }

  #unlinkUser(slot: number): void {
    const userId = this.#slots.text(slot, USER_ID)
    const next = this.#slots.leave(slot, OLDER, NEWER)
    const oldest = userId === null ? this.#oldestAnonymous : this.#users.get(userId)
    if (oldest === slot) this.#setOldest(userId, next)
  }

  #setOldest(userId: string | null, slot: number): void {
    if (userId === null) this.#oldestAnonymous = slot
    else if (slot === NONE) this.#users.delete(userId)
    else this.#users.set(userId, slot)
  }

  #raiseFloor(userId: string, passwordVersion: number, until: number): void {
    const slots = this.#slots
    const floor = this.#floors.get(userId)
    if (floor === undefined) {
      const raised = slots.take()
      slots.setLink(raised, KIND, FLOOR)
      slots.setShortTexts(raised, [null, userId, null, null, null])
      slots.setNumber(raised, PASSWORD_VERSION, passwordVersion)
      slots.setNumber(raised, EXPIRES_AT, until)
      this.#calendar.add(raised)
      this.#floors.set(userId, raised)
    } else {
      slots.setNumber(floor, PASSWORD_VERSION, Math.max(slots.number(floor, PASSWORD_VERSION), passwordVersion))
      this.#expireAt(floor, Math.max(slots.number(floor, EXPIRES_AT), until))
    }
  }
}
