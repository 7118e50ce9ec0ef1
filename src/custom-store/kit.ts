import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Corrupt,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type SessionRecord,
  type Store,
  type StoreCall,
} from '../contract/store.ts'
import { inTurn } from './connections.ts'
import { randomNumbers } from './random.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** So many new IDs of a session, two managers may make within the life of a forward. */
export const CHAIN = 64

/** Options of `testStore`. */
export interface TestStoreOptions {
  /** Of the random cases; a failure prints it. @default a random one */
  seed?: number
  /** Random sequences that are compared with the reference model. @default 50 */
  runs?: number
  /** How often each race is run. @default 12 */
  rounds?: number
  /** `false` for a store that keeps numeric user IDs only. @default true */
  textUserIds?: boolean
  /** Damages the row of a stored record, as a careless hand would. The corruption cases run only with it. */
  corrupt?: (store: Store, key: string) => Promise<void>
  /**
   * Lets each command that reads fail, as if a right or a table were missing; answers a function that undoes
   * it. The outage cases run only with it.
   */
  outage?: (store: Store) => Promise<() => Promise<unknown>>
}

/** One rule of the contract, and the case that shows it. */
export interface Case {
  readonly name: string
  readonly needs?: 'textUserIds' | 'corrupt' | 'outage'
  run(kit: Kit): Promise<void>
}

type Rules = Readonly<Record<string, Case['run']>>
/** Rules by their sentences, and the case that shows each. */
export const rules = (all: Rules): readonly Case[] => Object.entries(all).map(([name, run]) => ({ name, run }))
/** The same about what a store can be asked only if the suite is told more. */
export const rulesWith = (needs: NonNullable<Case['needs']>, all: Rules): readonly Case[] =>
  rules(all).map(each => ({ ...each, needs }))

/** A fresh write ID of 16 characters. */
export const newWriteId = (): string => randomBytes(12).toString('base64url')

/** A fresh session key for a user (`null`: anonymous), on the shard that the store asks for, else on the one given. */
export function keyFor(store: Store, userId: string | null, shard?: string): string {
  const wanted = userId === null ? undefined : store.shard?.(userId)
  const start = wanted ?? shard ?? randomBytes(3).toString('base64url').slice(0, 3)
  return start + randomBytes(33).toString('base64url').slice(0, 43)
}

/** A fresh canonical user ID, 2^62 to 2^63: doubles confuse it with its neighbours, signed integers do not. */
export const newUserId = (): string => ((1n << 62n) | (randomBytes(8).readBigUInt64BE() >> 2n)).toString()

/** Everything that cases use. Keys and user IDs are new each time: cases may share a database. */
export class Kit {
  readonly store: Store
  readonly options: TestStoreOptions
  /** The manager's clock. Cases move it by passing other instants; the real one stays at the start of the case. */
  readonly now: number = Date.now()
  /** Of a call by that clock. */
  readonly call: { readonly now: number } = { now: this.now }

  readonly seed: number

  constructor(stores: readonly Store[], options: TestStoreOptions) {
    this.store = inTurn(stores)
    this.options = options
    this.seed = options.seed ?? Math.floor(Math.random() * 0x7fff_ffff)
  }

  get rounds(): number {
    return this.options.rounds ?? 12
  }

  user(): string {
    return newUserId()
  }

  /** Two users whose sessions may have the same key: on one shard, if the store has shards. */
  neighbours(): [string, string] {
    const met = new Map<string, string>()
    for (;;) {
      const [user, other] = [newUserId(), newUserId()]
      const neighbour = this.store.shard === undefined ? other : met.get(this.store.shard(user))
      if (neighbour !== undefined) return [user, neighbour]
      met.set(this.store.shard!(user), user)
    }
  }

  key(userId: string | null = null): string {
    return keyFor(this.store, userId)
  }

  /** An anonymous session, 30 minutes and 12 hours long, unless told otherwise. */
  record(over: Partial<SessionRecord> = {}): SessionRecord {
    const userId = over.userId ?? null
    return {
      key: this.key(userId),
      kind: 'session',
      parent: null,
      userId,
      userName: userId === null ? null : 'Ada',
      passwordVersion: null,
      data: '{}',
      version: 1,
      writeId: newWriteId(),
      createdAt: this.now,
      seenAt: this.now,
      expiresAt: this.now + 30 * MINUTE,
      absoluteExpiresAt: this.now + 12 * HOUR,
      ...over,
    }
  }

  /** Stores a record and returns it. */
  async put(over: Partial<SessionRecord> = {}): Promise<SessionRecord> {
    const record = this.record(over)
    assert.equal(await this.create(record), 'created')
    return record
  }

  create(record: SessionRecord) {
    return this.store.create(record, this.call)
  }

  change(over: Partial<RecordChange> = {}): RecordChange {
    return {
      data: '{"n":1}',
      seenAt: this.now,
      expiresAt: this.now + 30 * MINUTE,
      writeId: newWriteId(),
      ...over,
    }
  }

  /** The replacement of a record: with a new key and, unless told otherwise, of the same identity and so shard. */
  successor(record: SessionRecord, over: Partial<SessionRecord> = {}): SessionRecord {
    const userId = over.userId === undefined ? record.userId : over.userId
    const key = keyFor(this.store, userId, userId === record.userId ? record.key.slice(0, 3) : undefined)
    return { ...record, key, version: 1, writeId: newWriteId(), ...over }
  }

  /** A plain same-identity replace as the manager does it; `until` is the end of a renewal's grace. */
  async forward(record: SessionRecord, until = this.now, salt = ''): Promise<SessionRecord> {
    const next = this.successor(record)
    const options = { forward: { salt, until } }
    assert.equal(await this.store.replace(record.key, record.version, next, options, this.call), 'created')
    return next
  }

  /** A session and its successors, each with a forward to the next. */
  async chain(first: SessionRecord, length: number): Promise<SessionRecord[]> {
    const records = [first]
    while (records.length <= length) records.push(await this.forward(records.at(-1)!, this.now + MINUTE))
    return records
  }

  deleteUser(userId: string, over: Partial<DeleteUserOptions> = {}) {
    return this.store.deleteUser(userId, { minPasswordVersionUntil: this.now + 24 * HOUR, ...over }, this.call)
  }

  /** Asks for a key at once. Whatever the store does, the answer is a promise. */
  async read(key: string, call: Partial<StoreCall> = {}): Promise<SessionRecord | Forward | Corrupt | null> {
    return this.store.read(key, { now: this.now, ...call })
  }

  /** The live record under the key, else `null`. */
  async find(key: string, now: number = this.now): Promise<SessionRecord | null> {
    const found = await this.store.read(key, { now })
    return found !== null && 'key' in found ? found : null
  }

  async isLive(key: string, now: number = this.now): Promise<boolean> {
    return (await this.find(key, now)) !== null
  }

  async noneLives(records: readonly { readonly key: string }[]): Promise<void> {
    const found = await Promise.all(records.map(({ key }) => this.find(key)))
    assert.deepEqual(found.filter(Boolean), [])
  }

  /** The keys of a user's live records, sorted. */
  async keys(userId: string, kind: SessionRecord['kind'] = 'session', now: number = this.now): Promise<string[]> {
    return (await this.store.listUser(userId, kind, { now })).map(({ key }) => key).sort()
  }

  async isExactly(record: SessionRecord, now: number = this.now): Promise<void> {
    same(await this.store.read(record.key, { now }), record)
  }

  /** The forward stands under its key that `forward` left there. */
  async leadsTo(next: SessionRecord, old: SessionRecord, until = this.now, salt = '', now = this.now): Promise<void> {
    same(await this.store.read(old.key, { now }), { movedTo: next.key, salt, until })
  }

  /** Not to be found by any method: a record that is gone stays gone. Several are asked for at once. */
  async isGone(...records: readonly SessionRecord[]): Promise<void> {
    await Promise.all(records.map(record => this.#isGone(record)))
  }

  async #isGone(record: SessionRecord): Promise<void> {
    const { key, userId, kind } = record
    assert.equal(await this.isLive(key), false, 'read finds the record')
    const touched = await this.store.touch(key, this.now, record.expiresAt, this.call)
    assert.equal(touched, 'gone', 'touch finds the record')
    const updated = await this.store.update(key, record.version, this.change(), this.call)
    assert.equal(updated, 'gone', 'update finds the record')
    assert.equal(await this.isLive(key), false, 'touch or update revived the record')
    if (userId !== null) assert.ok(!(await this.keys(userId, kind)).includes(key), 'listUser shows the record')
  }

  /**
   * Runs a race `rounds` times; the callback gets the number of the round and `together`, which starts the contestants
   * at once, alternately in this order and in the other: an in-process store must meet both.
   */
  async race(round: (together: Together, number: number) => Promise<void>): Promise<void> {
    for (let number = 0; number < this.rounds; number++) {
      const together = (async (...contestants: (() => Promise<unknown>)[]) => {
        const started: Promise<unknown>[] = []
        const order = contestants.map((_, index) => (number % 2 === 0 ? index : contestants.length - 1 - index))
        for (const index of order) started[index] = contestants[index]!()
        return Promise.all(started)
      }) as Together
      await round(together, number)
    }
  }

  /** Runs a round of a random case so often, with the numbers of a seed; a failure names the seed. */
  async random(rounds: number, round: (next: () => number) => Promise<void>): Promise<void> {
    for (let number = 0; number < rounds; number++) {
      const seed = this.seed + number
      await round(randomNumbers(seed)).catch(error => {
        const reason = error instanceof Error ? error.message : String(error)
        throw new Error(`{ seed: ${seed}, rounds: 1 } repeats it\n${reason}`, { cause: error })
      })
    }
  }
}

type Together = <T extends readonly unknown[]>(...contestants: { [N in keyof T]: () => Promise<T[N]> }) => Promise<T>

/** A turn of the event loop: whatever was to happen at the end of this one has begun. */
export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** Changes an object as a careless caller would. If a store answers frozen objects, the attempt fails: as good. */
export function spoil(object: object): void {
  for (const field of Object.keys(object)) Reflect.set(object, field, 'spoilt')
}

const plain = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : value

/** Equal field by field, whatever prototypes the store's objects have. */
export const same = (actual: unknown, expected: unknown): void => assert.deepEqual(plain(actual), expected)

/** As `same`, as an answer. */
export const isSame = (actual: unknown, expected: unknown): boolean => isDeepStrictEqual(plain(actual), expected)

/** Until when a forward that was left at `now` is kept. */
export const forwardEnd = (now: number, until: number): number => Math.max(now, until) + FORWARD_LIFETIME
