// What one client does next: random calls about a few users and sessions that all clients share, so that most of them
// meet another one about the same session.
import { createHash } from 'node:crypto'
import type { SessionRecord } from 'coatcheck/custom-store'
import { randomNumbers } from '../../../src/custom-store/random.ts'
import type { Call } from './model.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A small world: two users, their sessions, and a few anonymous ones. */
export interface Cell {
  readonly number: number
  readonly seed: number
  readonly users: readonly [string, string]
}

/** The cell of a round by its number. */
export function cellOf(seed: number, number: number): Cell {
  const next = randomNumbers(seed ^ (number * 0x9e3779b1))
  const user = () => String((BigInt(next()) << 32n) | BigInt(next()))
  const users = [user(), user()] as const
  return { number, seed: next(), users }
}

/** What a client needs of its store. */
export interface Shards {
  shard?(userId: string): string
}

/** The key of a numbered session: each process works it out by itself. */
export function keyOf(cell: Cell, slot: string, userId: string | null, store: Shards): string {
  const hash = createHash('sha256').update(`${cell.seed} ${slot} ${userId}`).digest('base64url')
  const start = userId === null ? hash.slice(0, 3) : (store.shard?.(userId) ?? hash.slice(0, 3))
  return start + hash.slice(0, 43)
}

/** One client's view of a cell: what it has made and met. */
export class Client {
  readonly #cell: Cell
  readonly #name: string
  readonly #next: () => number
  readonly #store: Shards
  readonly #now: () => number
  /** What may still be live, as it was last seen. */
  readonly #met = new Map<string, SessionRecord>()
  #made = 0
  #writes = 0
  /** A call whose outcome is unknown, to be repeated. */
  #open: Call | null = null

  constructor(cell: Cell, name: string, store: Shards, clock: () => number) {
    this.#cell = cell
    this.#name = name
    this.#store = store
    this.#now = clock
    const mix = createHash('sha256').update(`${cell.seed} ${name}`).digest().readInt32LE()
    this.#next = randomNumbers(mix)
  }

  /** The next call. */
  call(): Call {
    const open = this.#open
    this.#open = null
    if (open !== null && this.#one(2)) return { ...open, now: this.#now() }
    if (this.#met.size === 0) return this.#one(2) ? this.#create() : this.#list()
    const verbs = [
      ...[this.#create, this.#create, this.#replace, this.#replace, this.#replace, this.#replace],
      ...[this.#update, this.#update, this.#update, this.#update, this.#touch, this.#touch],
      ...[this.#read, this.#read, this.#read, this.#read, this.#delete],
      ...[this.#list, this.#list, this.#list, this.#deleteUser, this.#deleteUser],
    ]
    return this.#pick(verbs).call(this)
  }

  /** Hears what the call came to. */
  heard(call: Call, answer: unknown, failed?: string): void {
    if (failed !== undefined) {
      if (failed === 'unknown') this.#open = call
      return
    }
    switch (call.verb) {
      case 'read': {
        const found = answer as SessionRecord | { movedTo: string } | null
        if (found !== null && 'key' in found) this.#met.set(found.key, found)
        else this.#gone(call.key)
        break
      }
      case 'listUser':
        for (const record of answer as SessionRecord[]) this.#met.set(record.key, record)
        break
      case 'create':
      case 'replace': {
        if (answer === 'created') {
          this.#met.set(call.record.key, call.record)
          if (call.verb === 'replace' && this.#one(2)) this.#gone(call.oldKey)
        } else if (answer === 'gone' && call.verb === 'replace') this.#gone(call.oldKey)
        break
      }
      case 'update': {
        const known = this.#met.get(call.key)
        if (answer === 'updated' && known !== undefined)
          this.#met.set(call.key, { ...known, version: call.version + 1 })
        else if (answer === 'gone') this.#gone(call.key)
        else if (known !== undefined) this.#met.set(call.key, { ...known, version: known.version + 1 })
        break
      }
      default:
    }
  }

  // Half of the dead are asked about again: they must stay dead.
  #gone(key: string): void {
    if (this.#one(2)) this.#met.delete(key)
  }

  #one(of: number): boolean {
    return this.#next() % of === 0
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.#next() % choices.length]!
  }

  #writeId(): string {
    return `${this.#name.replaceAll(/\W/g, '_')}_${this.#cell.number}_w${this.#writes++}`.padEnd(8, '_')
  }

  #any(): SessionRecord {
    return this.#pick([...this.#met.values()])
  }

  #record(userId: string | null): SessionRecord {
    const now = this.#now()
    const createdAt = now - (this.#next() % (10 * MINUTE))
    const kind = userId !== null && this.#one(6) ? 'remember' : 'session'
    const own = [...this.#met.values()].filter(record => record.userId === userId && userId !== null)
    const parent = own.length > 0 && this.#one(5) ? this.#pick(own).key : null
    // A few end while the history runs, by the clock of some nodes earlier than by that of others.
    const isBrief = this.#one(8)
    const expiresAt = now + (isBrief ? 1 + (this.#next() % 2000) : 30 * MINUTE)
    return {
      key: keyOf(this.#cell, `${this.#name} ${this.#made++}`, userId, this.#store),
      kind,
      parent,
      userId,
      userName: userId === null ? null : 'ada',
      passwordVersion: userId === null ? null : this.#pick([null, 1, 2, 3, 3, 3, 3]),
      data: `{"by":"${this.#name}"}`,
      version: 1,
      writeId: this.#writeId(),
      createdAt,
      seenAt: now,
      expiresAt,
      absoluteExpiresAt: isBrief && this.#one(2) ? expiresAt + 10 * MINUTE : createdAt + 12 * HOUR,
    }
  }

  #create(): Call {
    const userId = this.#pick([...this.#cell.users, ...this.#cell.users, null])
    const record = this.#record(userId)
    // Now and then a key that is taken.
    const taken = [...this.#met.values()].find(met => met.userId === userId && userId !== null)
    const key = taken !== undefined && this.#one(12) ? taken.key : record.key
    return { verb: 'create', record: { ...record, key }, now: this.#now() }
  }

  #replace(): Call {
    const old = this.#any()
    const isLogIn = old.userId === null && !this.#one(3)
    const userId = isLogIn ? this.#pick(this.#cell.users) : old.userId
    const fresh = this.#record(userId)
    const same = userId === old.userId
    const record: SessionRecord = same
      ? { ...fresh, kind: old.kind, parent: old.parent, key: old.key.slice(0, 3) + fresh.key.slice(3) }
      : { ...fresh, kind: 'session', parent: null }
    const now = this.#now()
    const forward = { salt: this.#one(2) ? '' : 'c2FsdA', until: now + this.#pick([0, MINUTE]) }
    const options = same && !this.#one(4) ? { forward } : {}
    return { verb: 'replace', oldKey: old.key, oldVersion: this.#version(old), record, options, now }
  }

  #version({ version }: SessionRecord): number {
    return this.#one(12) ? Math.max(1, version + this.#pick([-1, 1])) : version
  }

  #update(): Call {
    const old = this.#any()
    const now = this.#now()
    const writeId = this.#writeId()
    const change = { data: `{"w":"${writeId}"}`, seenAt: now, expiresAt: now + 30 * MINUTE, writeId }
    return { verb: 'update', key: old.key, version: this.#version(old), change, now }
  }

  #touch(): Call {
    const now = this.#now()
    return { verb: 'touch', key: this.#any().key, seenAt: now, expiresAt: now + 31 * MINUTE, now }
  }

  #read(): Call {
    return { verb: 'read', key: this.#any().key, now: this.#now() }
  }

  #delete(): Call {
    return { verb: 'delete', key: this.#any().key, now: this.#now() }
  }

  #deleteUser(): Call {
    const userId = this.#pick(this.#cell.users)
    const now = this.#now()
    const except = [...this.#met.values()].find(record => record.userId === userId)
    const options = {
      minPasswordVersionUntil: now + 24 * HOUR,
      ...(except !== undefined && this.#one(2) ? { exceptKey: except.key } : {}),
      ...(this.#one(2) ? { minPasswordVersion: 1 + (this.#next() % 3) } : {}),
    }
    return { verb: 'deleteUser', userId, options, now }
  }

  #list(): Call {
    const kind = this.#one(5) ? 'remember' : 'session'
    return { verb: 'listUser', userId: this.#pick(this.#cell.users), kind, now: this.#now() }
  }
}
