import { isReading, type StoreOperation } from '../../src/contract/errors.ts'
import {
  type CreateOutcome,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
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
import { aBoolean, checkOptions, type OptionsOf, rule } from '../../src/text/check-options.ts'
import { linkTo, type RedisClient } from './client.ts'
import { type Answer, type Args, type Call, Commands, callOf } from './commands.ts'
import { NotReady, orIfForeign, refusalOf, storeError } from './errors.ts'
import { decode, encodeForward, encodeRecord, escaped, live, text } from './format.ts'
import { isKey, type Keys, keysUnder, shardOfKey, shardOfUser } from './keys.ts'
import { type ValueReads, valueReads } from './reads.ts'
import { page, positionIn } from './scan.ts'
import { DELETE, DELETE_USER, DISCARD, LEAVE, PUT, type Script, UNDO, WRITE } from './scripts.ts'

/** Options of a `RedisStore`. */
export interface RedisStoreOptions {
  /** Starts every key name; two applications in one Redis need two. @default 'coatcheck:' */
  prefix?: string
  /** Accepts a Redis that evicts keys; logout-everywhere then misses sessions. @default false */
  allowEviction?: boolean
  /**
   * Puts all users on one shard, so that a session ID can be drawn before its user is known. In a cluster all of these
   * sessions are then in one slot. Use a new `prefix` if you change it. @default false
   */
  singleSlot?: boolean
}

const OPTIONS: OptionsOf<RedisStoreOptions> = {
  where: 'RedisStore',
  rules: {
    // A brace would move the hash tag of Redis Cluster.
    prefix: rule(
      "at most 64 characters without braces, spaces and control characters, such as 'app1:'",
      value => typeof value === 'string' && /^[^{}\s\p{Cc}]{0,64}$/u.test(value),
    ),
    allowEviction: aBoolean,
    singleSlot: aBoolean,
  },
  // Options of express-session's stores, and their counterparts here.
  hints: {
    client: 'it is the first argument: new RedisStore(client, { … })',
    ttl: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
    disableTTL: 'the manager says how long a session lives: idleTimeout and absoluteTimeout',
    disableTouch: 'the manager says how often it is written down that a session was used: touchInterval',
    serializer: 'the manager writes data as text: codec',
  },
}

/** How many records one command reads, or one script ends. */
const CHUNK = 500
const chunks = <T>(items: readonly T[]) =>
  Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, i) => items.slice(i * CHUNK, (i + 1) * CHUNK))

/** A record that a `replace` ends. */
type Old = { readonly key: string; readonly version: number }

/**
 * Sessions in Redis or Valkey, standalone, behind Sentinel, or in a Redis Cluster. The application owns the client.
 *
 * @throws TypeError for a client of unknown shape, one that was never connected, reads from replicas or has a key prefix,
 * and for invalid options.
 * @example
 * const client = createClient({ url: 'redis://localhost' })
 * await client.connect()
 * const store = new RedisStore(client)
 */
export class RedisStore implements Store {
  readonly #keys: Keys
  readonly #commands: Commands
  readonly #reads: ValueReads
  /** Whether Redis is known not to evict keys, or may do so. */
  #isSafe: boolean

  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    checkOptions(OPTIONS, options)
    const { prefix = 'coatcheck:', allowEviction = false, singleSlot = false } = options
    this.#keys = keysUnder(prefix, singleSlot ? () => '000' : shardOfUser)
    this.#commands = new Commands(linkTo(client, `${prefix}{000}:`))
    this.#reads = valueReads(this.#commands, this.#keys)
    this.#isSafe = allowEviction
  }

  shard(userId: string): string {
    return this.#keys.shardOf(userId)
  }

  async create(record: SessionRecord, at: StoreCall): Promise<CreateOutcome> {
    this.#requireShard(record)
    return this.#call('create', at, call => this.#put(call, record, {}, null)) as Promise<CreateOutcome>
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    at: StoreCall,
  ): Promise<ReplaceOutcome> {
    this.#requireShard(record)
    const old = { key: oldKey, version: oldVersion }
    if (!isKey(oldKey)) return 'gone'
    const isAcross = this.#commands.link.isCluster && shardOfKey(oldKey) !== shardOfKey(record.key)
    return this.#call('replace', at, call =>
      isAcross ? this.#move(call, record, options, old) : this.#put(call, record, options, old),
    )
  }

  async read(key: string, at: StoreCall): Promise<ReadAnswer> {
    if (!isKey(key)) return null
    if (!this.#isSafe) await this.#call('read', at, async () => {})
    try {
      const value = await this.#reads.read(key, at.deadline)
      const stored = decode(key, value)
      if (stored === null || !('corrupt' in stored)) return live(stored, at.now)
      return await this.#doubt(key, text(value), stored.corrupt, at)
    } catch (error) {
      if (refusalOf(error) !== 'WRONGTYPE') throw storeError('read', error, false)
      return this.#doubt(key, '', 'the key is not a string', at)
    }
  }

  update(key: string, version: number, { data, seenAt, expiresAt, writeId }: RecordChange, at: StoreCall) {
    return this.#call('update', at, async call => {
      const args = [seenAt, expiresAt, SWEEP_MARGIN, version, writeId, data]
      const [outcome] = await this.#run(call, WRITE, key, args)
      return outcome as 'updated' | 'conflict' | 'gone'
    })
  }

  touch(key: string, seenAt: number, expiresAt: number, at: StoreCall) {
    return this.#call('touch', at, async call => {
      const [outcome] = await this.#run(call, WRITE, key, [seenAt, expiresAt, SWEEP_MARGIN, '', '', ''])
      return outcome as 'touched' | 'gone'
    })
  }

  delete(key: string, at: StoreCall): Promise<boolean> {
    return this.#call('delete', at, async call => {
      const forwards: string[] = []
      for (let next = key; ; ) {
        const [outcome, movedTo] = await this.#run(call, DELETE, next, [], forwards)
        if (outcome !== 'moved') return outcome === 'ended'
        // A forward never changes.
        forwards.push(this.#keys.session(next))
        next = text(movedTo)
      }
    })
  }

  deleteUser(userId: string, options: DeleteUserOptions, at: StoreCall): Promise<number> {
    const { exceptKey, minPasswordVersion, minPasswordVersionUntil } = options
    const { index, minVersion, session, shardOf } = this.#keys
    const shard = shardOf(userId)
    return this.#call('deleteUser', at, async call => {
      let excepted = exceptKey !== undefined && shardOfKey(exceptKey) === shard ? [exceptKey] : []
      let count = 0
      for (let members: readonly string[] = []; ; ) {
        const sessions = [...excepted, ...members.map(member => shard + member)].map(session)
        const keys = [index(shard, userId), minVersion(shard, userId), ...sessions]
        const minimum = [minPasswordVersion ?? '', minPasswordVersionUntil, SWEEP_MARGIN]
        const args = [escaped(userId), 2 + excepted.length, CHUNK, ...minimum]
        const [outcome, ended, ...others] = await this.#commands.run(call, DELETE_USER, shard, keys, args)
        if (outcome === 'moved') excepted = [text(ended)]
        else {
          count += Number(ended)
          if (outcome === 'ended') return count
          call.partly ||= members.length > 0
          members = others.map(text)
        }
      }
    })
  }

  listUser(userId: string, kind: SessionRecord['kind'], at: StoreCall): Promise<SessionRecord[]> {
    const shard = this.#keys.shardOf(userId)
    return this.#call('listUser', at, async call => {
      const index = ['ZRANGE', this.#keys.index(shard, userId), '0', '-1']
      const members = await this.#commands.send(call, shard, index).catch(orIfForeign([]))
      if (!Array.isArray(members)) throw new Error('the answer of ZRANGE was not understood')
      const records: SessionRecord[] = []
      const seen = new Set<string>()
      let asked = members.map(member => shard + text(member))
      // A session that got a new ID after the index was read: follow its forward.
      while (asked.length > 0) {
        for (const key of asked) seen.add(key)
        const found = await this.#stored(call, asked)
        for (const stored of found)
          if ('key' in stored && stored.userId === userId && stored.kind === kind && stored.expiresAt > at.now)
            records.push(stored)
        asked = found.flatMap(({ movedTo }) => (movedTo === undefined || seen.has(movedTo) ? [] : movedTo))
      }
      return records
    })
  }

  async scan(cursor: string | null, limit: number, at: StoreCall): Promise<ScanPage> {
    const position = positionIn(cursor)
    return this.#call('scan', at, call => page(this.#commands, this.#keys, call, position, limit))
  }

  // A caller that did not ask `shard` would put the session and its user's index into different slots.
  #requireShard({ key, userId }: SessionRecord) {
    if (userId !== null && shardOfKey(key) !== this.shard(userId))
      throw new TypeError(`the key of a user's session must begin with shard(userId)`)
  }

  /** Runs a script over one session, and over other keys of its shard. */
  async #run(call: Call, script: Script, key: string, args: Args, others: string[] = []): Promise<Answer> {
    if (!isKey(key)) return ['gone']
    return this.#commands.run(call, script, key, [this.#keys.session(key), ...others], args)
  }

  async #put(call: Call, record: SessionRecord, { forward }: ReplaceOptions, old: Old | null, hadParent = false) {
    const { now } = call
    const { key, userId, parent, expiresAt, absoluteExpiresAt } = record
    const shard = shardOfKey(key)
    const life = Math.max(0, expiresAt - now) + SWEEP_MARGIN
    const ownParent = parent !== null && shardOfKey(parent) === shard
    const args = [
      encodeRecord(record),
      life,
      Math.max(life, absoluteExpiresAt - now + SWEEP_MARGIN),
      parent === null || hadParent ? 'none' : ownParent ? 'own' : 'elsewhere',
      old?.version ?? '',
      old && forward ? encodeForward(key, forward, now) : '',
      forward ? Math.max(0, forward.until - now) + FORWARD_LIFETIME + SWEEP_MARGIN : 0,
    ]
    const { session, index, minVersion } = this.#keys
    const keys = [session(key), session(old?.key ?? key)]
    if (userId !== null) keys.push(index(shard, userId), minVersion(shard, userId), session(ownParent ? parent : key))
    const [outcome] = await this.#commands.run(call, PUT, key, keys, args)
    return outcome as ReplaceOutcome
  }

  // Across two slots of a cluster: read the old record, write the new one, then end the old one if it has not changed since.
  // The last step decides, and leaves a tombstone with the write ID. By it a repeated call knows its own work, and several
  // logins over one old session know which was first. A process that dies in between leaves both records; no browser has
  // the new ID.
  async #move(call: Call, record: SessionRecord, options: ReplaceOptions, old: Old): Promise<ReplaceOutcome> {
    const value = await this.#stringAt(old.key, call)
    if (value === `x ${record.writeId}`) {
      const stored = decode(record.key, await this.#stringAt(record.key, call))
      return stored !== null && 'writeId' in stored && stored.writeId === record.writeId ? 'created' : 'gone'
    }
    const before = decode(old.key, value)
    if (before === null || !('key' in before) || before.expiresAt <= call.now) return 'gone'
    if (before.version !== old.version) return 'conflict'
    const put = await this.#put(call, record, options, null, before.parent === record.parent)
    if (put !== 'created') return put
    call.partly = true
    let outcome = ''
    try {
      const args = [old.version, record.writeId, FORWARD_LIFETIME + SWEEP_MARGIN]
      outcome = (await this.#run(call, LEAVE, old.key, args))[0]
    } finally {
      if (outcome !== 'ended') {
        // Has one second, because the deadline of the call may have passed.
        const undoing = callOf({ now: 0, deadline: performance.now() + 1000 })
        const index = record.userId === null ? [] : [this.#keys.index(shardOfKey(record.key), record.userId)]
        await this.#run(undoing, UNDO, record.key, [record.writeId], index)
      }
    }
    return outcome === 'ended' ? put : (outcome as 'gone' | 'conflict')
  }

  async #stringAt(key: string, call: Call): Promise<string | null> {
    const value = await this.#reads.alone(key, call).catch(orIfForeign(null))
    return value === null || value === undefined ? null : text(value)
  }

  /** The records and forwards under some keys of one shard. */
  async #stored(call: Call, keys: readonly string[]) {
    const parts = chunks(keys).map(async part => {
      const values = await this.#commands.send(call, part[0]!, ['MGET', ...part.map(this.#keys.session)])
      // With fewer answers than keys we can't tell which is missing: the list would lack a session.
      if (!Array.isArray(values) || values.length !== part.length)
        throw new Error('the answer of MGET was not understood')
      return values.flatMap((value, i) => {
        const stored = decode(part[i]!, value)
        return stored === null || 'corrupt' in stored ? [] : stored
      })
    })
    return (await Promise.all(parts)).flat()
  }

  // Removes a damaged value only if the server still has exactly that value. We may have read something else: the answer
  // of a connection that the application left in MULTI (`QUEUED`), or a value that was replaced meanwhile.
  async #doubt(key: string, value: string, corrupt: string, at: StoreCall) {
    return this.#call('read', at, async (call): Promise<ReadAnswer> => {
      const [outcome] = await this.#run(call, DISCARD, key, [value])
      if (outcome === 'discarded') return { corrupt }
      if (outcome === 'absent') return null
      const stored = decode(key, await this.#reads.alone(key, call))
      if (stored !== null && 'corrupt' in stored)
        throw new Error('the value that was read is not the one that the server has')
      return live(stored, at.now)
    })
  }

  async #call<T>(operation: StoreOperation, at: StoreCall, work: (call: Call) => Promise<T>): Promise<T> {
    const call = callOf(at)
    let hasBegun = false
    try {
      if (!this.#isSafe) await this.#commands.again(call, shardOfUser(''), () => this.#check(call))
      hasBegun = true
      return await work(call)
    } catch (error) {
      const mayHaveRun = hasBegun && (call.partly || refusalOf(error) === null)
      throw storeError(operation, error, mayHaveRun && !isReading(operation))
    }
  }

  // Asks before the first command, until there is a good answer. A Redis that evicts keys removes the indexes of active users
  // first (194 of 200 under allkeys-lru), and logout-everywhere no longer finds their sessions.
  async #check({ timeout }: Call): Promise<void> {
    const masters = this.#commands.link.masters()
    const answers = await Promise.all(masters.map(master => master.send(['INFO', 'memory'], timeout))).catch(error => {
      if (refusalOf(error) !== 'NOPERM') throw error
      throw new Error('this user may not ask INFO: grant +info, or pass allowEviction: true', { cause: error })
    })
    for (const memory of answers.map(text)) {
      const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
      const limit = /^maxmemory:(\d+)/m.exec(memory)?.[1]
      if (limit === undefined && policy === undefined) throw new NotReady('INFO memory was not understood')
      if (limit !== '0' && policy !== 'noeviction')
        throw new Error(
          `Redis evicts keys when it is full (maxmemory ${limit}, maxmemory-policy ${policy}), and then logout-everywhere would miss sessions: set maxmemory-policy noeviction, or pass allowEviction: true`,
        )
    }
    this.#isSafe = true
  }
}
