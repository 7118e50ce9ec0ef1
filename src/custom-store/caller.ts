import assert from 'node:assert/strict'
import type { SessionRecord, Store } from '../contract/store.ts'
import { HOUR, isSame, type Kit, MINUTE, turn } from './kit.ts'
import { pick, randomNumbers } from './random.ts'
import { ReferenceStore } from './reference.ts'

const STEPS = 15

/** The answers that a read of one key may give: its states after each write, in order. */
class History {
  readonly states: unknown[] = []
  /** The index of the state that the last acknowledged write left. */
  acknowledged = 0
}

/**
 * One of many callers of a store. It writes to the sessions of a user, one write after the other, and reads before each,
 * meanwhile and afterwards: a read sees the last write acknowledged before it, or one begun since.
 */
class Caller {
  readonly #kit: Kit
  readonly #next: () => number
  readonly #model = new ReferenceStore()
  readonly #histories = new Map<string, History>()
  readonly #readers: Promise<void>[] = []
  readonly #userId: string
  #records: SessionRecord[] = []

  constructor(kit: Kit, next: () => number) {
    this.#kit = kit
    this.#next = next
    this.#userId = kit.user()
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      this.#readSome()
      await this.#pause()
      await this.#step()
      this.#readSome()
      if (this.#next() % 2 === 0) await Promise.all(this.#readers)
    }
    await Promise.all(this.#readers)
  }

  #step(): Promise<void> {
    const next = this.#next
    const { now } = this.#kit
    const call = { now, deadline: performance.now() + 25_000 }
    const record = this.#records.length === 0 || next() % 4 === 0 ? undefined : pick(this.#records, next())
    if (record === undefined) {
      const made = this.#kit.record({ userId: next() % 3 === 0 ? null : this.#userId })
      return this.#write(store => store.create(made, call), made)
    }
    const { key } = record
    const version = this.#model.records.get(key)?.version ?? 1
    const choice = next() % 8
    if (choice < 2) {
      const change = this.#kit.change({ data: `{"n":${next()}}` })
      return this.#write(store => store.update(key, version, change, call))
    }
    const seenAt = now + (next() % MINUTE)
    if (choice === 2) return this.#write(store => store.touch(key, seenAt, now + HOUR, call))
    if (choice === 3) return this.#write(store => store.delete(key, call))
    if (choice === 4)
      return this.#write(store => store.deleteUser(this.#userId, { minPasswordVersionUntil: now }, call))
    const successor = this.#kit.successor(record)
    const options = choice === 5 ? {} : { forward: { salt: pick(['', 'c2FsdA'], next()), until: now + MINUTE } }
    return this.#write(store => store.replace(key, version, successor, options, call), successor)
  }

  async #write(call: (store: Store) => Promise<unknown>, made?: SessionRecord): Promise<void> {
    if (made !== undefined) {
      this.#records = [...this.#records.slice(-5), made]
      this.#histories.set(made.key, new History())
      this.#histories.get(made.key)!.states.push(null)
    }
    const expected = await call(this.#model)
    for (const [key, { states }] of this.#histories) states.push(await this.#model.read(key, { now: this.#kit.now }))
    const written = call(this.#kit.store)
    this.#readSome()
    assert.deepEqual(await written, expected)
    for (const history of this.#histories.values()) history.acknowledged = history.states.length - 1
  }

  /** Reads of none to five keys, the same ones among them. */
  #readSome(): void {
    if (this.#records.length === 0) return
    for (let count = this.#next() % 6; count > 0; count--) {
      const reader = this.#read(pick([...this.#histories.keys()], this.#next()))
      // It is waited for later; until then its failure is no unhandled one.
      reader.catch(() => {})
      this.#readers.push(reader)
    }
  }

  async #read(key: string): Promise<void> {
    const { now } = this.#kit
    const history = this.#histories.get(key)!
    const { acknowledged } = history
    const found = await this.#kit.read(key, { now, deadline: performance.now() + 25_000 })
    const possible = history.states.slice(acknowledged)
    if (possible.some(state => isSame(found, state))) return
    assert.deepEqual(found, possible[0], 'a read shows what an acknowledged write had changed, or what was never there')
  }

  async #pause(): Promise<void> {
    for (let turns = this.#next() % 4; turns > 0; turns--) await (turns === 3 ? null : turn())
  }
}

/** Lets one caller write and read at random, beside others; a read that shows anything else is an error. */
export const readAndWrite = (kit: Kit, seed: number): Promise<void> => new Caller(kit, randomNumbers(seed)).run()
