import { randomBytes } from 'node:crypto'
import type { StoreOperation } from '../../src/contract/errors.ts'
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
  type StoreCall,
  SWEEP_MARGIN,
} from '../../src/contract/store.ts'
import { aBoolean, checkOptions, type OptionPlace, wholeNumber } from '../../src/text/check-options.ts'
import { type Link, linkTo, type RedisClient } from './client.ts'
import { Commands, deadlineOf, type Run, storeError } from './commands.ts'
import { evictionHazard } from './eviction.ts'
import { decode, encodeForward, encodeRecord, escaped, forwardKeptUntil } from './format.ts'
import { aKeyPrefix, type Keys, keysUnder, memberOf, shardOf, shardOfKey } from './keys.ts'
import { refusalOf } from './refusals.ts'
import { ReplicaWaiter } from './replicas.ts'
import { DELETE, DELETE_USER, DISCARD, END, PAGE, PUT, type Script, TOUCH, UNDO, UPDATE, WINDOW } from './scripts.ts'

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
  /** Work on a Redis whose `maxmemory-policy` evicts keys, which makes log-out-everywhere incomplete. @default false */
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
    checkOptions(OPTIONS, options)
    const { prefix = 'coatcheck:', waitReplicas = 0, allowEviction = false } = options
    this.#keys = keysUnder(prefix)
    this.#link = linkTo(client)
    this.#replicas = waitReplicas === 0 ? null : new ReplicaWaiter(this.#link, waitReplicas)
    this.#commands = new Commands(this.#link, this.#replicas)
    this.#safe = allowEviction
  }

  shard(userId: string): string {
    return shardOf(userId)
  }

  async create(record: SessionRecord, options: CreateOptions, { now, deadline }: StoreCall): Promise<CreateResult> {
    requireShard(record)
    return this.#verb('create', deadline, call =>
      this.#put(call, record, { ...options, now }, null),
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
    return this.#verb('replace', deadline, call =>
      this.#link.cluster && shardOfKey(oldKey) !== shardOfKey(record.key)
        ? this.#moveAcross(call, record, { ...options, now }, old)
        : this.#put(call, record, { ...options, now }, old),
    )
  }

  async read(key: string, { now, deadline }: StoreCall): Promise<SessionRecord | Forward | Corrupt | null> {
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
      const run = this.#ending(call, userId, { ...options, now })
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

  // Runs DELETE_USER over some members. A forward from the excepted one never changes, so that what is known of where
  // it leads stays true.
  #ending(
    call: Call,
    userId: string,
    { now, exceptKey, passwordVersion, floorUntil }: DeleteUserOptions & { readonly now: number },
  ) {
    const shard = shardOf(userId)
    const spared = exceptKey !== undefined && shardOfKey(exceptKey) === shard ? [exceptKey] : []
    return async (extent: 'all' | 'part', members: readonly string[]): Promise<[string, ...unknown[]]> => {
      for (;;) {
        const known = spared.length
        const answer = await call.run(DELETE_USER, {
          shard,
          keys: [
            this.#keys.index(userId),
            this.#keys.floor(userId),
            ...spared.map(this.#keys.session),
            ...members.map(member => this.#keys.session(shard + member)),
          ],
          now,
          args: [escaped(userId), known, extent, passwordVersion ?? '', floorUntil, SWEEP_MARGIN],
          acknowledged: extent === 'all',
        })
        if (answer[0] !== 'follow') return answer
        if (spared.length === known) spared.push(text(answer[1]))
      }
    }
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now, deadline }: StoreCall): Promise<SessionRecord[]> {
    return this.#verb('listUser', deadline, async call => {
      const records: SessionRecord[] = []
      for await (const page of this.#records(call, userId))
        for (const { record } of page)
          if (record?.userId === userId && record.kind === kind && record.expiresAt > now) records.push(record)
      return records
    })
  }

  // What the index of a user names, a page after the other, with what is stored there; `null` is nothing.
  async *#records(call: Call, userId: string) {
    const shard = shardOf(userId)
    const index = this.#keys.index(userId)
    const seen = new Set<string>()
    // By score: a rank would skip members where others leave meanwhile.
    for (let [from, skipped] = ['-inf', 0]; ; ) {
      const answer = await call
        .read(shard, ['ZRANGE', index, from, '+inf', 'BYSCORE', 'LIMIT', `${skipped}`, `${PAGE}`, 'WITHSCORES'])
        .catch(error => {
          if (refusalOf(error) === 'WRONGTYPE') return []
          throw error
        })
      // RESP3 answers pairs.
      const flat = (answer as unknown[]).flat()
      const keys: string[] = []
      for (let i = 0; i < flat.length; i += 2) {
        const member = text(flat[i])
        if (!seen.has(member)) keys.push(shard + member)
        seen.add(member)
      }
      const values = await Promise.all(
        chunks(keys, COLLECT).map(part => call.read(shard, ['MGET', ...part.map(this.#keys.session)])),
      )
      yield (values.flat() as unknown[]).map((value, i) => {
        const key = keys[i]!
        if (value === null || value === undefined) return { key, isStored: false, record: null }
        const found = decode(key, text(value))
        const isRecord = found !== null && !('corrupt' in found) && found.movedTo === undefined
        return { key, isStored: true, record: isRecord ? found : null }
      })
      if (flat.length < 2 * PAGE) return
      const last = text(flat.at(-1))
      skipped = last === from ? skipped + PAGE : 0
      from = last
    }
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
    options: PutOptions,
    old: Old | null,
    step: Step = ONLY_STEP,
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
      life,
      Math.max(life, record.absoluteExpiresAt - now + SWEEP_MARGIN),
      step.hasParent ? '' : (parent ?? ''),
      ownParent ? 'own' : 'elsewhere',
      limited ? limit.max : 0,
      limited ? limit.onLimit : '',
      old?.version ?? '',
      old && forward ? encodeForward(key, forward, now) : '',
      forward ? Math.max(0, forward.until - now) + FORWARD_LIFETIME + SWEEP_MARGIN : 0,
      step.name,
      step.attempt,
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
    const ended: string[] = []
    let members: string[] = []
    for (;;) {
      const [outcome, ...rest] = await call.run(PUT, {
        shard,
        keys: [...keys, ...members.map(member => this.#keys.session(shard + member))],
        now,
        args,
        acknowledged: old !== null,
      })
      if (outcome === 'prepared') step.attempt = text(rest[0])
      if (outcome !== 'again') {
        for (const member of rest) if (outcome === 'created') ended.push(shard + text(member))
        return { outcome: outcome as ReplaceResult['outcome'], ended }
      }
      const [others, ...named] = rest
      if (Number(others) <= WINDOW) members = named.map(text)
      else {
        const left = await this.#thinOut(call, userId!, { now, limit: limit! }, [key, old?.key])
        if (left.isFull) return { outcome: 'limit', ended }
        for (const each of left.ended) ended.push(each)
        members = left.members
      }
    }
  }

  // Where a user has far more sessions than a script should look at: ends what is beyond the limit, in pieces. What a
  // limit says of the last one is for the script to decide.
  async #thinOut(
    call: Call,
    userId: string,
    { now, limit }: Pick<Required<PutOptions>, 'now' | 'limit'>,
    own: readonly (string | undefined)[],
  ): Promise<{ isFull: boolean; ended: string[]; members: string[] }> {
    const living: SessionRecord[] = []
    const others: string[] = []
    const gone: string[] = []
    for await (const page of this.#records(call, userId))
      for (const { key, isStored, record } of page) {
        if (own.includes(key)) continue
        if (!isStored) gone.push(key)
        else if (record?.userId === userId && record.kind === 'session' && record.expiresAt > now) living.push(record)
        else others.push(key)
      }
    const isFull = limit.onLimit === 'refuse' && living.length >= limit.max
    living.sort((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1))
    const surplus = limit.onLimit === 'refuse' ? [] : living.splice(0, Math.max(0, living.length - limit.max))
    const ended = surplus.map(({ key }) => key)
    if (ended.length > 0) call.partly = true
    const run = this.#ending(call, userId, { now, floorUntil: now })
    await Promise.all(chunks([...ended, ...gone].map(memberOf), CHUNK).map(part => run('part', part)))
    return { isFull, ended, members: [...living.map(({ key }) => key), ...others].map(memberOf) }
  }

  // Two slots of a cluster, so three steps: the new record is prepared, which is not live; the old one is ended, which
  // decides; the new one becomes live. A process that dies in between leaves the old session as it was, or neither.
  async #moveAcross(call: Call, record: SessionRecord, options: PutOptions, old: Old): Promise<ReplaceResult> {
    const step: Step = { name: 'prepare', attempt: randomBytes(12).toString('base64url'), hasParent: false }
    let prepared = await this.#put(call, record, options, null, step)
    if (!isPrepared(prepared) && prepared.outcome !== 'created') {
      // What is to be said of the old session comes first; without a refusal its end will tell.
      const before = await this.#stored(call, old.key)
      if (before === null || before.expiresAt <= options.now) return { outcome: 'gone', ended: [] }
      if (before.version !== old.version) return { outcome: 'conflict', ended: [] }
      if (prepared.outcome !== 'orphan' || before.parent !== record.parent) return prepared
      step.hasParent = true
      prepared = await this.#put(call, record, options, null, step)
    }
    if (!isPrepared(prepared)) return prepared
    const [outcome] = await call.run(END, {
      shard: shardOfKey(old.key),
      keys: [this.#keys.session(old.key)],
      now: options.now,
      args: [old.version, step.attempt, FORWARD_LIFETIME + SWEEP_MARGIN],
      acknowledged: true,
    })
    if (outcome !== 'ended') {
      // Where this fails, it is gone in a moment by itself.
      await this.#undo(call, record, step.attempt).catch(() => {})
      return { outcome: outcome as 'gone' | 'conflict', ended: [] }
    }
    call.partly = true
    step.name = 'confirm'
    return this.#put(call, record, options, null, step)
  }

  async #stored(call: Call, key: string): Promise<SessionRecord | null> {
    const value = await call.read(shardOfKey(key), ['GET', this.#keys.session(key)]).catch(error => {
      if (refusalOf(error) === 'WRONGTYPE') return null
      throw error
    })
    const found = value === null || value === undefined ? null : decode(key, text(value))
    return found === null || 'corrupt' in found || found.movedTo !== undefined ? null : found
  }

  async #undo(call: Call, { key, userId }: SessionRecord, attempt: string) {
    const { keys, ...alone } = this.#alone(key, 0, [attempt])
    await call.run(UNDO, { ...alone, keys: userId === null ? keys : [...keys, this.#keys.index(userId)] })
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

type PutOptions = CreateOptions & { readonly now: number }

interface Old {
  readonly key: string
  readonly version: number
}

/** Of a replacement that takes several: which one, and whose. */
interface Step {
  name: '' | 'prepare' | 'confirm'
  attempt: string
  /** The old record hangs on the same parent, so that its life is not asked for again. */
  hasParent: boolean
}
const ONLY_STEP: Step = Object.freeze({ name: '', attempt: '', hasParent: false })
const isPrepared = ({ outcome }: { outcome: string }) => outcome === 'prepared'

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
