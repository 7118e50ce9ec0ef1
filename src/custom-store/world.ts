import assert from 'node:assert/strict'
import type { ScanPage, SessionRecord, Store } from '../contract/store.ts'
import { HOUR, keyFor, MINUTE, newUserId, newWriteId } from './kit.ts'
import { pick } from './random.ts'
import { ReferenceStore } from './reference.ts'

/** One step of a random sequence: the method, and three numbers for its arguments. */
export type Step = readonly [method: number, a: number, b: number, c: number]

/** The numbers of a step are below this. */
export const STEP_RANGE = 1 << 16

type Method = (world: World, a: number, b: number, c: number) => Promise<void>

// Contended on purpose: two users, and every key that was ever used may be used again.
const METHODS: readonly (readonly [name: string, weight: number, method: Method])[] = [
  ['create', 5, (world, a, b, c) => world.create(a, b, c)],
  ['replace', 5, (world, a, b, c) => world.replace(a, b, c)],
  ['update', 4, (world, a, b, c) => world.update(a, b, c)],
  ['touch', 2, (world, a, b) => world.touch(a, b)],
  ['read', 3, (world, a) => world.read(a)],
  ['delete', 1, (world, a) => world.delete(a)],
  ['deleteUser', 1, (world, a, b, c) => world.deleteUser(a, b, c)],
  ['listUser', 2, (world, a, b) => world.listUser(a, b)],
  ['repeat', 3, world => world.repeat()],
  ['sweep', 1, (world, a) => world.sweep(a)],
  ['clock', 1, (world, a) => world.moveClock(a)],
]
const LOTS = METHODS.flatMap(([name, weight, method]) => Array.from({ length: weight }, () => [name, method] as const))

export const stepName = ([method, ...numbers]: Step): string => `${pick(LOTS, method)[0]}(${numbers.join(', ')})`

/**
 * A store and the reference model, led through the same steps; each answer is compared. The cases do not ask for what the
 * contract leaves open, such as how long an expired record stays stored.
 */
export class World {
  readonly #store: Store
  readonly #model = new ReferenceStore()
  readonly #users = [newUserId(), newUserId()] as const
  readonly #records: SessionRecord[] = []
  readonly #start = Date.now()
  #now = this.#start
  #latest = this.#start
  #lastWrite: (() => Promise<void>) | undefined

  constructor(store: Store) {
    this.#store = store
  }

  async run(step: Step): Promise<void> {
    const [method, a, b, c] = step
    await pick(LOTS, method)[1](this, a, b, c)
  }

  /** Compares all that was ever stored. */
  async compareAll(): Promise<void> {
    await Promise.all(this.#records.map(({ key }) => this.#compareRead(key)))
    for (const user of this.#users)
      for (const kind of ['session', 'remember'] as const) await this.#compareList(user, kind)
    if (this.#store.scan !== undefined) await this.#compareWalk()
  }

  create(a: number, b: number, c: number): Promise<void> {
    const userId = pick([null, ...this.#users, ...this.#users], a)
    const record = this.#fresh(userId, b, c)
    const taken = b % 7 === 0 ? this.#standing(c, userId) : undefined
    const call = { now: this.#now }
    return this.#write(store => store.create(taken === undefined ? record : { ...record, key: taken }, call), record)
  }

  replace(a: number, b: number, c: number): Promise<void> {
    const old = this.#any(a)
    const userId = pick([old.userId, old.userId, old.userId, ...this.#users], b)
    const current = this.#model.records.get(old.key) ?? old
    const version = c % 7 === 0 ? current.version + 1 : current.version
    const same = userId === current.userId
    const parent = same && c % 3 !== 0 ? current.parent : null
    const fresh = this.#fresh(userId, c, b, same ? old.key.slice(0, 3) : undefined)
    const record: SessionRecord = same ? { ...fresh, kind: current.kind, parent: parent ?? fresh.parent } : fresh
    const until = pick([this.#now, this.#now + 5 * MINUTE], c)
    const forward = same && b % 3 !== 0 ? { forward: { salt: pick(['', 'c2FsdA'], b), until } } : {}
    const call = { now: this.#now }
    return this.#write(store => store.replace(old.key, version, record, forward, call), record)
  }

  update(a: number, b: number, c: number): Promise<void> {
    const { key } = this.#any(a)
    const version = (this.#model.records.get(key)?.version ?? 1) + pick([0, 0, 0, 0, -1, 1], b)
    const change = { data: `{"n":${b}}`, writeId: newWriteId(), seenAt: this.#seen(c), expiresAt: this.#expiry(c) }
    const call = { now: this.#now }
    return this.#write(store => store.update(key, version, change, call))
  }

  touch(a: number, b: number): Promise<void> {
    const { key } = this.#any(a)
    const [seenAt, expiresAt, call] = [this.#seen(b), this.#expiry(b), { now: this.#now }]
    return this.#write(store => store.touch(key, seenAt, expiresAt, call))
  }

  read(a: number): Promise<void> {
    return this.#compareRead(this.#any(a).key)
  }

  async delete(a: number): Promise<void> {
    const { key } = this.#any(a)
    const last = this.#end(key)
    if (last === null) return
    const present = this.#model.records.get(last)
    const known = present === undefined || present.expiresAt > this.#latest
    const [actual, expected] = [
      await this.#store.delete(key, { now: this.#now }),
      await this.#model.delete(key, { now: this.#now }),
    ]
    if (known) assert.equal(actual, expected)
    this.#lastWrite = undefined
  }

  deleteUser(a: number, b: number, c: number): Promise<void> {
    const userId = pick(this.#users, a)
    const { key } = this.#spared(userId, c)
    const call = { now: this.#now }
    const options = {
      minPasswordVersionUntil: this.#start + 1000 * HOUR,
      ...(b % 3 === 0 && this.#end(key) !== null ? { exceptKey: key } : {}),
      ...(b % 2 === 0 ? { minPasswordVersion: c % 4 } : {}),
    }
    return this.#write(store => store.deleteUser(userId, options, call))
  }

  listUser(a: number, b: number): Promise<void> {
    return this.#compareList(pick(this.#users, a), pick(['session', 'session', 'remember'], b))
  }

  async repeat(): Promise<void> {
    await this.#lastWrite?.()
  }

  async sweep(a: number): Promise<void> {
    // The model keeps all: swept records have expired for every clock that this world shows.
    await this.#store.sweep?.(1 + (a % 10), { now: this.#latest })
    this.#lastWrite = undefined
  }

  async moveClock(a: number): Promise<void> {
    if (a % 4 === 0) this.#now = this.#latest - pick([0, 1000, 4 * MINUTE], a >> 2)
    else this.#now = this.#latest + pick([1, MINUTE, 10 * MINUTE, 31 * MINUTE], a >> 2)
    this.#latest = Math.max(this.#now, this.#latest)
    this.#lastWrite = undefined
  }

  async #write(call: (store: Store) => Promise<unknown>, record?: SessionRecord): Promise<void> {
    const compare = async () => assert.deepEqual(await call(this.#store), await call(this.#model))
    if (record !== undefined) this.#records.push(record)
    await compare()
    this.#lastWrite = compare
  }

  async #compareRead(key: string): Promise<void> {
    const left = this.#model.forwards.get(key)
    if (left !== undefined && left.keptUntil <= this.#latest) return
    const found = await this.#store.read(key, { now: this.#now })
    assert.deepEqual(found === null ? null : { ...found }, await this.#model.read(key, { now: this.#now }))
  }

  async #compareList(userId: string, kind: SessionRecord['kind']): Promise<void> {
    const listed = async (store: Store) =>
      (await store.listUser(userId, kind, { now: this.#now }))
        .map(record => ({ ...record }))
        .sort((x, y) => (x.key < y.key ? -1 : 1))
    assert.deepEqual(await listed(this.#store), await listed(this.#model))
  }

  async #compareWalk(): Promise<void> {
    const found = new Map<string, unknown>()
    let cursor: string | null = null
    do {
      const page: ScanPage = await this.#store.scan!(cursor, 500, { now: this.#now })
      for (const record of page.records) found.set(record.key, { ...record })
      for (const key of page.forwards) found.set(key, 'a forward')
      cursor = page.next
    } while (cursor !== null)
    for (const { key } of this.#records) {
      const left = this.#model.forwards.get(key)
      if (left !== undefined && left.keptUntil <= this.#latest) continue
      const record = this.#model.live(key, this.#now) ?? null
      assert.deepEqual(found.get(key) ?? null, left === undefined ? record : 'a forward')
    }
  }

  // Three of four times a live one, if there is any: sequences about the dead alone are short.
  #any(number: number): SessionRecord {
    if (this.#records.length === 0) return this.#fresh(null, number, 0)
    const live = number % 4 === 0 ? [] : this.#records.filter(({ key }) => this.#model.live(key, this.#now))
    return pick(live.length === 0 ? this.#records : live, number >> 2)
  }

  // The key that the forwards from a key lead to; `null` if one of them need not be kept any more.
  #end(key: string): string | null {
    const left = this.#model.forwards.get(key)
    if (left === undefined) return key
    return left.keptUntil <= this.#latest ? null : this.#end(left.forward.movedTo)
  }

  // Half of the time a session that was replaced, if the user has any: its successor is to survive.
  #spared(userId: string, number: number): SessionRecord {
    const replaced = this.#records.filter(record => record.userId === userId && this.#model.forwards.has(record.key))
    return number % 2 === 0 || replaced.length === 0 ? this.#any(number >> 1) : pick(replaced, number >> 1)
  }

  // A key of this user that is certainly taken still.
  #standing(number: number, userId: string | null): string | undefined {
    const { key, userId: owner } = this.#any(number)
    const left = this.#model.forwards.get(key)
    const taken = left === undefined ? this.#model.live(key, this.#latest) !== undefined : left.keptUntil > this.#latest
    return taken && owner === userId ? key : undefined
  }

  #fresh(userId: string | null, b: number, c: number, shard?: string): SessionRecord {
    const kind = userId !== null && b % 5 === 0 ? 'remember' : 'session'
    const own = this.#records.filter(record => record.userId === userId)
    const parent = userId !== null && c % 8 === 0 && own.length > 0 ? pick(own, b).key : null
    const createdAt = this.#now - (c % 60) * 1000
    return {
      key: keyFor(this.#store, userId, shard),
      kind,
      parent,
      userId,
      userName: userId === null ? null : pick(['Ada', ''], b),
      passwordVersion: userId === null ? null : pick([null, 0, 1, 2, 3, 3, 3, 3, 3], c),
      data: `{"b":${b}}`,
      version: 1,
      writeId: newWriteId(),
      createdAt,
      seenAt: this.#now,
      expiresAt: pick([this.#now + 30 * MINUTE, this.#now + 30 * MINUTE, this.#now + 2 * HOUR, this.#now], b),
      absoluteExpiresAt: createdAt + pick([3, 12], b) * HOUR,
    }
  }

  #seen(number: number): number {
    return this.#now + pick([0, 0, -10 * MINUTE, MINUTE], number)
  }

  #expiry(number: number): number {
    return this.#now + pick([30 * MINUTE, HOUR, 24 * HOUR, -MINUTE], number)
  }
}
