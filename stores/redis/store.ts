import { checkOptionNames, optionNames } from '../../src/check-options.ts'
import type { StoreOperation } from '../../src/errors.ts'
import { quote } from '../../src/quote.ts'
import {
  type Corrupt,
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type ReplaceResult,
  type SessionRecord,
  type Store,
  SWEEP_MARGIN,
} from '../../src/store.ts'
import { type Link, linkTo, type RedisClient } from './client.ts'
import { Commands, deadlineOf, type Run, storeError } from './commands.ts'
import { evictionHazard } from './eviction.ts'
import { decode, encodeForward, encodeRecord, escaped, forwardKeptUntil } from './format.ts'
import { type Keys, keysUnder, memberOf, shardOf, shardOfKey } from './keys.ts'
import { refusalOf } from './refusals.ts'
import { ReplicaWaiter } from './replicas.ts'
import { DELETE, DELETE_USER, DISCARD, END, PUT, type Script, TOUCH, UNDO, UPDATE } from './scripts.ts'

export interface RedisStoreOptions {
  /** Characters before every key name; two applications in one Redis need two. @default 'coatcheck:' */
  prefix?: string
  /**
   * Number of replicas that must have a revocation (destroy, regenerate, invalidateUser) before it is acknowledged;
   * with fewer in time the call rejects and may be repeated. Lowers the risk that a failover brings a session back, does
   * not remove it. @default 0
   */
  waitReplicas?: number
  /** Work on a Redis whose `maxmemory-policy` evicts keys, which makes log-out-everywhere incomplete. @default false */
  allowEviction?: boolean
}

const OPTIONS = optionNames<RedisStoreOptions>({ prefix: true, waitReplicas: true, allowEviction: true })
// What stores of express-session have, and what to do here instead.
const HINTS = {
  client: 'it is the first argument: new RedisStore(client, { … })',
  ttl: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
  disableTTL: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
  disableTouch: 'the manager says how often a visit is written down: touchInterval',
  serializer: 'the manager writes data as text: codec',
}

// A user's sessions are ended in pieces of this many, so that no script holds the server up for long.
const CHUNK = 250
const COLLECT = 500
/** A text as a client answers it: Buffers come with a type mapping. */
const text = (reply: unknown) => (typeof reply === 'string' ? reply : String(reply))

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
  readonly #replicas: ReplicaWaiter | null
  #safe: boolean
  #checking: Promise<void> | null = null

  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    checkOptionNames('RedisStore', options, OPTIONS, HINTS)
    const { prefix = 'coatcheck:', waitReplicas = 0, allowEviction = false } = options
    if (!Number.isInteger(waitReplicas) || waitReplicas < 0 || waitReplicas > 100)
      throw new TypeError(`option 'waitReplicas' must be a whole number from 0 to 100, got ${quote(waitReplicas)}`)
    this.#keys = keysUnder(prefix)
    this.#link = linkTo(client)
    this.#replicas = waitReplicas === 0 ? null : new ReplicaWaiter(this.#link, waitReplicas)
    this.#commands = new Commands(this.#link, this.#replicas)
    this.#safe = allowEviction
  }

  shard(userId: string): string {
    return shardOf(userId)
  }

  async create(record: SessionRecord, options: CreateOptions, deadline?: number): Promise<CreateResult> {
    requireShard(record)
    return this.#verb('create', deadline, call => this.#put(call, record, options, null)) as Promise<CreateResult>
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    deadline?: number,
  ): Promise<ReplaceResult> {
    requireShard(record)
    const old = { key: oldKey, version: oldVersion }
    return this.#verb('replace', deadline, call =>
      this.#link.cluster && shardOfKey(oldKey) !== shardOfKey(record.key)
        ? this.#moveAcross(call, record, options, old)
        : this.#put(call, record, options, old),
    )
  }

  async read(key: string, now: number, deadline?: number): Promise<SessionRecord | Forward | Corrupt | null> {
    if (!this.#safe) await this.#check('read', deadlineOf(deadline))
    const name = this.#keys.session(key)
    let value: unknown
    try {
      value = await this.#commands.get(key, name, deadline)
    } catch (error) {
      if (refusalOf(error) === 'WRONGTYPE') return this.#discard(key, '', 'the key is not a string')
      try {
        value = await this.#commands.readAgain(error, shardOfKey(key), ['GET', name], deadline)
      } catch (again) {
        throw storeError('read', again, false, false)
      }
    }
    if (value === null || value === undefined) return null
    const stored = text(value)
    const found = decode(key, stored)
    if (found === null) return null
    if ('corrupt' in found) return this.#discard(key, stored, found.corrupt)
    if (found.movedTo !== undefined) return forwardKeptUntil(stored) > now ? found : null
    return found.expiresAt > now ? found : null
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    now: number,
    deadline?: number,
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
    now: number,
    deadline?: number,
  ): Promise<'touched' | 'gone'> {
    return this.#verb('touch', deadline, async call => {
      const [outcome] = await call.run(TOUCH, this.#alone(key, now, [seenAt, expiresAt, SWEEP_MARGIN]))
      return outcome as 'touched' | 'gone'
    })
  }

  async delete(key: string, deadline?: number): Promise<boolean> {
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

  async deleteUser(userId: string, options: DeleteUserOptions, deadline?: number): Promise<number> {
    const { now, exceptKey, passwordVersion, floorUntil } = options
    const shard = shardOf(userId)
    const except = exceptKey !== undefined && shardOfKey(exceptKey) === shard ? memberOf(exceptKey) : ''
    const run = (call: Call, extent: 'all' | 'part', members: readonly string[]) =>
      call.run(DELETE_USER, {
        shard,
        keys: [this.#keys.index(userId), this.#keys.floor(userId), ...members.map(m => this.#keys.session(shard + m))],
        now,
        args: [escaped(userId), except, extent, passwordVersion ?? '', floorUntil, SWEEP_MARGIN],
        acknowledged: extent === 'all',
      })
    return this.#verb('deleteUser', deadline, async call => {
      let count = 0
      let members: string[] = []
      for (;;) {
        if (members.length > CHUNK) {
          call.partly = true
          const parts = await Promise.all(chunks(members, CHUNK).map(part => run(call, 'part', part)))
          for (const [, ended] of parts) count += Number(ended)
          members = []
        }
        const [outcome, ...rest] = await run(call, 'all', members)
        if (outcome === 'ended') return count + Number(rest[0])
        // The script named the members that it was not given: those that came meanwhile, or all.
        members = rest.map(text)
      }
    })
  }

  async listUser(
    userId: string,
    kind: SessionRecord['kind'],
    now: number,
    deadline?: number,
  ): Promise<SessionRecord[]> {
    const shard = shardOf(userId)
    return this.#verb('listUser', deadline, async call => {
      const members = await call.read(shard, ['ZRANGE', this.#keys.index(userId), '0', '-1']).catch(error => {
        if (refusalOf(error) === 'WRONGTYPE') return []
        throw error
      })
      const keys = (members as unknown[]).map(member => shard + text(member))
      const values = await Promise.all(
        chunks(keys, COLLECT).map(part => call.read(shard, ['MGET', ...part.map(this.#keys.session)])),
      )
      const records: SessionRecord[] = []
      for (const [i, value] of (values.flat() as unknown[]).entries()) {
        if (value === null || value === undefined) continue
        const found = decode(keys[i]!, text(value))
        if (found === null || 'corrupt' in found || found.movedTo !== undefined) continue
        if (found.userId === userId && found.kind === kind && found.expiresAt > now) records.push(found)
      }
      return records
    })
  }

  /** Closes the store's own connections (`waitReplicas`); the client stays open, it is the application's. */
  async close(): Promise<void> {
    this.#replicas?.close()
  }

  #alone(key: string, now: number, args: readonly (string | number)[]): Run {
    return { shard: shardOfKey(key), keys: [this.#keys.session(key)], now, args }
  }

  async #put(
    call: Call,
    record: SessionRecord,
    options: CreateOptions,
    old: { key: string; version: number } | null,
  ): Promise<ReplaceResult> {
    const { now, limit, forward } = options
    const { key, userId, parent } = record
    const shard = shardOfKey(key)
    const session = this.#keys.session(key)
    const life = Math.max(0, record.expiresAt - now) + SWEEP_MARGIN
    const limited = limit !== undefined && userId !== null && record.kind === 'session'
    const ownParent = parent !== null && shardOfKey(parent) === shard
    const args = [
      encodeRecord(record),
      record.writeId,
      life,
      record.passwordVersion ?? 0,
      userId === null ? '' : Math.max(life, record.absoluteExpiresAt - now + SWEEP_MARGIN),
      parent ?? '',
      ownParent ? 'own' : 'elsewhere',
      limited ? limit.max : 0,
      limited ? limit.onLimit : '',
      old?.version ?? '',
      old && forward ? encodeForward(key, forward, now) : '',
      forward ? Math.max(0, forward.until - now) + FORWARD_LIFETIME + SWEEP_MARGIN : 0,
    ]
    const oldSession = old ? this.#keys.session(old.key) : session
    const keys =
      userId === null
        ? old
          ? [session, oldSession]
          : [session]
        : [
            session,
            oldSession,
            this.#keys.index(userId),
            this.#keys.floor(userId),
            ownParent ? this.#keys.session(parent) : session,
          ]
    let members: string[] = []
    for (;;) {
      const [outcome, ...rest] = await call.run(PUT, {
        shard,
        keys: [...keys, ...members.map(member => this.#keys.session(shard + member))],
        now,
        args,
        acknowledged: old !== null,
      })
      if (outcome !== 'again')
        return { outcome: outcome as ReplaceResult['outcome'], ended: rest.map(member => shard + text(member)) }
      members = rest.map(text)
    }
  }

  // Two slots of a cluster, so two steps: the new record first. What happens in between is decided by the second one.
  async #moveAcross(
    call: Call,
    record: SessionRecord,
    options: CreateOptions,
    old: { key: string; version: number },
  ): Promise<ReplaceResult> {
    const name = this.#keys.session(old.key)
    const shard = shardOfKey(old.key)
    const stored = await call.read(shard, ['GET', name]).catch(error => {
      if (refusalOf(error) === 'WRONGTYPE') return null
      throw error
    })
    const value = stored === null || stored === undefined ? null : text(stored)
    if (value === `x ${record.writeId}`) {
      // A repeated call. Where the new record was ended since, it must not come back.
      const now = await this.#commands.get(record.key, this.#keys.session(record.key), call.deadline)
      const made = typeof now === 'string' || Buffer.isBuffer(now) ? decode(record.key, text(now)) : null
      return { outcome: made && 'writeId' in made && made.writeId === record.writeId ? 'created' : 'gone', ended: [] }
    }
    const before = value === null ? null : decode(old.key, value)
    if (before === null || 'corrupt' in before || before.movedTo !== undefined || before.expiresAt <= options.now)
      return { outcome: 'gone', ended: [] }
    if (before.version !== old.version) return { outcome: 'conflict', ended: [] }
    const result = await this.#put(call, record, options, null)
    if (result.outcome !== 'created') return result
    call.partly = true
    try {
      const [outcome] = await call.run(END, {
        shard,
        keys: [name],
        now: options.now,
        args: [old.version, record.writeId, FORWARD_LIFETIME + SWEEP_MARGIN],
        acknowledged: true,
      })
      if (outcome === 'ended') return result
      await this.#undo(call, record, options.now)
      return { outcome: outcome as 'gone' | 'conflict', ended: result.ended }
    } catch (error) {
      await this.#undo(call, record, options.now).catch(() => {})
      throw error
    }
  }

  async #undo(call: Call, record: SessionRecord, now: number) {
    await call.run(UNDO, this.#alone(record.key, now, [record.writeId]))
  }

  async #discard(key: string, value: string, corrupt: string): Promise<Corrupt> {
    // Where it cannot be removed now (a full or read-only Redis), it still reads as absent, and is removed next time.
    await this.#commands.run(DISCARD, this.#alone(key, 0, [value]), deadlineOf(undefined)).catch(() => {})
    return { corrupt }
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
      throw storeError(operation, error, operation !== 'listUser', call.partly)
    }
  }

  // Once, before the first command; again as long as there is no good answer.
  async #check(operation: StoreOperation, deadline: number): Promise<void> {
    const shard = shardOf('')
    this.#checking ??= this.#commands
      .first(shard, deadline, () => evictionHazard(this.#link))
      .then(hazard => {
        if (hazard !== null) throw new Error(hazard)
        this.#safe = true
      })
      .finally(() => {
        this.#checking = null
      })
    try {
      await this.#checking
    } catch (error) {
      throw storeError(operation, error, false, false)
    }
  }
}

// One call of a verb: all its commands share a deadline.
interface Call {
  readonly deadline: number
  /** Something has been written, so that a failure leaves a part behind. */
  partly: boolean
  run(script: Script, run: Run): Promise<[string, ...unknown[]]>
  read(shard: string, args: string[]): Promise<unknown>
}

// Only where the manager did not ask `shard`: the index would be in another slot than the session.
function requireShard({ key, userId }: SessionRecord) {
  if (userId !== null && shardOfKey(key) !== shardOf(userId))
    throw new TypeError(`the key of a user's session must begin with shard(userId)`)
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let i = 0; i < items.length; i += size) parts.push(items.slice(i, i + size))
  return parts
}
