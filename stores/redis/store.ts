import { isReading, type StoreOperation } from '../../src/contract/errors.ts'
import {
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
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
import { aBoolean, checkOptions, type OptionPlace, wholeNumber } from '../../src/text/check-options.ts'
import { linkTo, type RedisClient } from './client.ts'
import { type Call, Commands, deadlineOf, endOf, inTime, type Run, storeError } from './commands.ts'
import { evictionHazard } from './eviction.ts'
import { decode, forwardKeptUntil, text } from './format.ts'
import { aKeyPrefix, type Keys, keysUnder, shardOf, shardOfKey } from './keys.ts'
import { type Link, NotReady } from './link.ts'
import { ALONE, ValueReads } from './reads.ts'
import { RecordWriter } from './record-writer.ts'
import { refusalOf } from './refusals.ts'
import { ReplicaWaiter } from './replicas.ts'
import { DELETE, DISCARD, TOUCH, UPDATE } from './scripts.ts'
import { CHUNK, chunks, UserIndex } from './user-index.ts'
import { Walk } from './walk.ts'

/** What a `RedisStore` takes beside its client. */
export interface RedisStoreOptions {
  /** Characters before every key name; two applications in one Redis need two. @default 'coatcheck:' */
  prefix?: string
  /**
   * Number of replicas that must have a revocation (destroy, regenerate, invalidateUser) before it is acknowledged;
   * with fewer in time the call rejects and may be repeated. Lowers the risk that a failover brings a session back, does
   * not remove it. @default 0
   */
  waitReplicas?: number
  /** Work on a Redis whose `maxmemory-policy` evicts keys, which makes logout-everywhere incomplete. @default false */
  allowEviction?: boolean
}

const OPTIONS: OptionPlace<RedisStoreOptions> = {
  where: 'RedisStore',
  rules: { prefix: aKeyPrefix, waitReplicas: wholeNumber(0, 100), allowEviction: aBoolean },
  // Options that stores of express-session have, and what to do here instead.
  hints: {
    client: 'it is the first argument: new RedisStore(client, { … })',
    ttl: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
    disableTTL: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
    disableTouch: 'the manager says how often a visit is written down: touchInterval',
    serializer: 'the manager writes data as text: codec',
  },
}

/**
 * Sessions in Redis or Valkey, standalone, behind Sentinel, or in a Redis Cluster. The application owns the client.
 *
 * @throws TypeError for a client of unknown shape, one that was never connected or reads from replicas, and for options
 * that cannot be.
 */
export class RedisStore implements Store {
  readonly #link: Link
  readonly #keys: Keys
  readonly #commands: Commands
  readonly #reads: ValueReads
  readonly #users: UserIndex
  readonly #writer: RecordWriter
  readonly #replicas: ReplicaWaiter | null
  readonly #walk: Walk
  #safe: boolean
  #checking: Promise<unknown> | null = null

  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    const { prefix = 'coatcheck:', waitReplicas = 0, allowEviction = false } = options
    this.#keys = keysUnder(prefix)
    this.#link = linkTo(client)
    if (waitReplicas > 0 && this.#link.cannotWait !== undefined)
      throw new TypeError(`waitReplicas: not with this client: ${this.#link.cannotWait}`)
    this.#replicas = waitReplicas === 0 ? null : new ReplicaWaiter(this.#link, waitReplicas)
    this.#commands = new Commands(this.#link, this.#replicas)
    this.#reads = new ValueReads(this.#commands, this.#keys, this.#link.cluster)
    this.#users = new UserIndex(this.#keys)
    this.#writer = new RecordWriter(this.#keys, this.#users, this.#link.cluster)
    this.#walk = new Walk(this.#link, this.#commands, this.#keys, prefix)
    this.#safe = allowEviction
  }

  shard(userId: string): string {
    return shardOf(userId)
  }

  async create(record: SessionRecord, options: CreateOptions, { now, deadline }: StoreCall): Promise<CreateResult> {
    requireShard(record)
    return this.#verb('create', deadline, call =>
      this.#writer.create(call, record, { ...options, now }),
    ) as Promise<CreateResult>
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    { now, deadline }: StoreCall,
  ): Promise<ReplaceResult> {
    requireShard(record)
    const old = { key: oldKey, version: oldVersion }
    return this.#verb('replace', deadline, call => this.#writer.replace(call, record, { ...options, now }, old))
  }

  read(key: string, { now, deadline }: StoreCall): Promise<ReadAnswer> {
    if (this.#safe) return this.#find(key, now, deadline)
    return this.#check('read', deadlineOf(deadline)).then(() => this.#find(key, now, deadline))
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now, deadline }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    const args = [version, change.writeId, change.seenAt, change.expiresAt, SWEEP_MARGIN, change.data]
    return this.#verb('update', deadline, async call => {
      const [outcome] = await call.run(UPDATE, this.#alone(key, now, args))
      return outcome as 'updated' | 'conflict' | 'gone'
    })
  }

  async touch(
    key: string,
    seenAt: number,
    expiresAt: number,
    { now, deadline }: StoreCall,
  ): Promise<'touched' | 'gone'> {
    return this.#verb('touch', deadline, async call => {
      const [outcome] = await call.run(TOUCH, this.#alone(key, now, [seenAt, expiresAt, SWEEP_MARGIN]))
      return outcome as 'touched' | 'gone'
    })
  }

  async delete(key: string, { deadline }: StoreCall): Promise<boolean> {
    return this.#verb('delete', deadline, async call => {
      const chain = [key]
      for (;;) {
        const keys = chain.map(this.#keys.session)
        const [outcome, movedTo] = await call.run(DELETE, {
          shard: shardOfKey(key),
          keys,
          now: 0,
          args: [],
          acknowledged: true,
        })
        if (outcome !== 'again') return outcome === 'ended'
        // A forward never changes, so that what is known of the chain stays true.
        chain.push(text(movedTo))
      }
    })
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now, deadline }: StoreCall): Promise<number> {
    return this.#verb('deleteUser', deadline, async call => {
      const run = this.#users.ending(call, userId, { ...options, now })
      let count = 0
      let members: string[] = []
      for (;;) {
        if (members.length > CHUNK) {
          call.partly = true
          const parts = await Promise.all(chunks(members, CHUNK).map(part => run('part', part)))
          for (const [, ended] of parts) count += Number(ended)
          members = []
        }
        const [outcome, ...rest] = await run('all', members)
        if (outcome === 'ended') return count + Number(rest[0])
        // The script named members that it was not given: those that came meanwhile, or a page of all.
        members = rest.map(text)
      }
    })
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    return this.#verb('listUser', deadline, async call => {
      const records: SessionRecord[] = []
      for await (const page of this.#users.records(call, userId))
        for (const { record } of page)
          if (record?.userId === userId && record.kind === kind && record.expiresAt > now) records.push(record)
      return records
    })
  }

  async scan(cursor: string | null, limit: number, { now, deadline }: StoreCall): Promise<ScanPage> {
    const at = this.#walk.from(cursor)
    return this.#verb('scan', deadline, call => this.#walk.page(at, limit, now, call.deadline))
  }

  /** Closes the store's own connections (`waitReplicas`); the client stays open, it is the application's. */
  async close(): Promise<void> {
    this.#replicas?.close()
  }

  #find(key: string, now: number, deadline: number | undefined): Promise<ReadAnswer> {
    return this.#reads.read(key, deadline).then(
      value => this.#found(key, now, deadline, value),
      error => this.#findAgain(error, key, now, deadline),
    )
  }

  async #findAgain(error: unknown, key: string, now: number, deadline: number | undefined): Promise<ReadAnswer> {
    let value: unknown
    try {
      value = await this.#reads.again(error, key, deadline)
    } catch (again) {
      if (refusalOf(again) === 'WRONGTYPE') return this.#doubt(key, now, deadline, '', 'the key is not a string')
      throw storeError('read', again, false, false)
    }
    return this.#found(key, now, deadline, value)
  }

  #found(key: string, now: number, deadline: number | undefined, value: unknown): ReadAnswer | Promise<ReadAnswer> {
    // MGET answers so for a key of another type as well: a read alone, or a write, deals with that.
    if (value === null || value === undefined) return null
    const stored = text(value)
    const found = decode(key, stored)
    if (found === null) return null
    if ('corrupt' in found) {
      // A proxy before several servers answers an MGET with an error in the place of each key that is away.
      if (value instanceof Error) return this.#findAgain(ALONE, key, now, deadline)
      return this.#doubt(key, now, deadline, stored, found.corrupt)
    }
    return live(found, stored, now)
  }

  #alone(key: string, now: number, args: readonly (string | number)[]): Run {
    return { shard: shardOfKey(key), keys: [this.#keys.session(key)], now, args }
  }

  // What reads as damaged is so only where the server finds it under the key, and is removed. It may also be what a
  // connection answers to any command (`QUEUED`), or have been replaced since: a session must not end by that.
  async #doubt(
    key: string,
    now: number,
    deadline: number | undefined,
    value: string,
    corrupt: string,
  ): Promise<ReadAnswer> {
    try {
      const [outcome] = await this.#commands.run(DISCARD, this.#alone(key, 0, [value]), deadlineOf(deadline))
      if (outcome === 'discarded') return { corrupt }
      if (outcome === 'absent') return null
      const again = await this.#reads.again(ALONE, key, deadline)
      const stored = again === null || again === undefined ? null : decode(key, text(again))
      if (stored !== null && 'corrupt' in stored) throw new Error('what was read is not what the server has')
      return stored === null ? null : live(stored, text(again), now)
    } catch (error) {
      throw storeError('read', error, false, false)
    }
  }

  async #verb<T>(
    operation: StoreOperation,
    deadline: number | undefined,
    work: (call: Call) => Promise<T>,
  ): Promise<T> {
    const until = deadlineOf(deadline)
    if (!this.#safe) await this.#check(operation, until)
    const commands = this.#commands
    const call: Call = {
      deadline: until,
      partly: false,
      run: (script, run) => commands.run(script, run, until),
      read: (shard, args) => commands.read(shard, args, until),
    }
    try {
      return await work(call)
    } catch (error) {
      throw storeError(operation, error, !isReading(operation), call.partly)
    }
  }

  // Once, before the first command; again as long as there is no good answer.
  async #check(operation: StoreOperation, deadline: number): Promise<void> {
    const shard = shardOf('')
    const end = endOf(deadline)
    try {
      while ((await this.#commands.first(shard, deadline, () => this.#ask(end))) === 'silent')
        // A timer may ring a fraction early.
        if (performance.now() + 1 >= end) throw new NotReady('a master did not answer INFO in time')
    } catch (error) {
      throw storeError(operation, error, false, false)
    }
  }

  // All calls share one question, which ends with the time of the call that asked it: a master that is silent for a while
  // must not lock the store. A call that has more time asks again.
  #ask(end: number): Promise<unknown> {
    this.#checking ??= inTime(
      evictionHazard(this.#link).then(hazard => {
        if (hazard !== null) throw new Error(hazard)
        this.#safe = true
      }),
      end,
    ).finally(() => {
      this.#checking = null
    })
    return inTime(this.#checking, end)
  }
}

/** What is reported of a record or a forward. */
function live(found: SessionRecord | Forward, value: string, now: number): ReadAnswer {
  if ('movedTo' in found) return forwardKeptUntil(value) > now ? found : null
  return found.expiresAt > now ? found : null
}

// Only where the manager did not ask `shard`: the index would be in another slot than the session.
function requireShard({ key, userId }: SessionRecord) {
  if (userId !== null && shardOfKey(key) !== shardOf(userId))
    throw new TypeError(`the key of a user's session must begin with shard(userId)`)
}
