// Stores with one fault each, and the cases of the suite that must fail for it.
import { setImmediate as turn } from 'node:timers/promises'
import type { Store } from 'coatcheck'
import {
  type Corrupt,
  corruption,
  type Forward,
  type ScanPage,
  type SessionRecord,
  type StoreCall,
} from 'coatcheck/custom-store'
import { ReferenceStore, type TestStoreOptions } from 'coatcheck/custom-store/testing'

type Answer = SessionRecord | Forward | Corrupt | null

interface Reader {
  readonly key: string
  readonly call: StoreCall
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * The right one: the reference, which also checks what it reads, and sends the reads of one turn as one command. Its
 * answer takes a turn to come back, as over a network.
 */
export class RightStore extends ReferenceStore {
  isAway = false
  #readers: Reader[] = []

  override read(key: string, call: StoreCall): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#readers.push({ key, call, resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  #send(): void {
    const readers = this.#readers
    this.#readers = []
    this.ask(readers).then(
      answers => {
        for (const [index, reader] of readers.entries()) reader.resolve(answers[index]!)
      },
      error => {
        for (const reader of readers) reader.reject(error)
      },
    )
  }

  async ask(readers: readonly Reader[]): Promise<Answer[]> {
    this.mustBeThere()
    const answers = await Promise.all(readers.map(({ key, call }) => this.find(key, call)))
    await turn()
    return answers
  }

  async find(key: string, call: StoreCall): Promise<Answer> {
    const record = this.records.get(key)
    const corrupt = record === undefined ? null : corruption(record)
    if (corrupt === null) return super.read(key, call)
    this.records.delete(key)
    return { corrupt }
  }

  override live(key: string, now: number) {
    const live = super.live(key, now)
    return live !== undefined && corruption(live) === null ? live : undefined
  }
  override liveOf(userId: string, kind: SessionRecord['kind'], now: number) {
    return super.liveOf(userId, kind, now).filter(record => corruption(record) === null)
  }
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    this.mustBeThere()
    return super.scan(cursor, limit, call)
  }
  override async count(call: StoreCall) {
    this.mustBeThere()
    return super.count(call)
  }
  mustBeThere() {
    if (this.isAway) throw new Error('the database is away')
  }
}

/** What the suite is told of these stores. */
export const OPTIONS: TestStoreOptions = {
  async corrupt(store, key) {
    const { records } = store as RightStore
    records.set(key, { ...records.get(key)!, version: -1 })
  },
  async outage(store) {
    const right = store as RightStore
    right.isAway = true
    return async () => {
      right.isAway = false
    }
  },
}

type Methods = Partial<Omit<RightStore, 'records' | 'forwards' | 'minPasswordVersions'> & Pick<Store, 'shard'>>
/** What a store does in another way. `right` is the store without it, as `super` is of a class. */
type Change = (store: RightStore, right: RightStore) => Methods

export interface Fault {
  readonly fault: string
  readonly open: () => RightStore
  /** The cases that fail. */
  readonly cases: readonly string[]
}

/** Stores by their faults: each with what it does in another way, and with the cases that fail. */
const faults = (all: Record<string, readonly [Change, ...string[]]>): readonly Fault[] =>
  Object.entries(all).map(([fault, [change, ...cases]]) => ({ fault, cases, open: () => wrongBy(change) }))

function wrongBy(change: Change): RightStore {
  const store = new RightStore()
  const right = new Proxy(store, {
    get(_, member) {
      const method = Reflect.get(RightStore.prototype, member)
      return typeof method === 'function' ? method.bind(store) : Reflect.get(store, member)
    },
  })
  return Object.assign(store, change(store, right))
}

const LATE_UPDATE = 'does not let a late update or touch revive a session that is being ended'
const SWEEP = 'sweeps only what expired more than five minutes ago, and at most as much as it is told'
const CHAIN = 'ends the last successor when the first session is ended through a chain of forwards, of 64 too'
const KEYS_APART = 'tells keys apart that differ in one character, in case or in a wildcard'
const MALFORMED = 'finds nothing under malformed keys and still works afterwards'
const USERS_APART = 'keeps text user IDs apart that differ in case, accent, length, wildcards or quotes'
const MANY_SESSIONS = 'ends 1,200 sessions of one user, and what replaces them meanwhile'
const UNTIL = 'holds a minimum password version until the later of all minPasswordVersionUntil, and no longer'
const OLD_PASSWORD = 'lets no login with the old password survive a logout everywhere at the same time'
const STALE_REPLACE = 'answers stale-login to a replace below the minimum password version, and the old session stays'
const SUCCESSOR = 'spares the successor of the excepted session, however often it was replaced, and no other session'
const RENEWED = 'spares the excepted session while it is being replaced, in a logout everywhere'
const TO_MILLISECOND = 'shows a session until its expiry, to the millisecond'
const INCREMENTS = 'counts to 100 in 100 parallel increments'
const BOTH_AT_ONCE = 'ends the session and its successor when a logout and a rotation run at once'
const TWINS = [
  'tells a session of another user or another instant from a repetition with its key and write ID',
  'tells a login of another user or another instant from a repeated replace with its key and write ID',
]
const ORDER = 'decides a replace in the order repeated, gone, conflict, collision, stale login, orphan'
const user = (userId: string) => `keeps the sessions of user ${userId} apart from every other user's`

/** Looks keys up by what `find` makes of them. */
const keyedBy =
  (matches: (stored: string, key: string) => boolean): Change =>
  ({ records }, right) => {
    const found = (key: string) => [...records.keys()].find(stored => matches(stored, key)) ?? key
    return {
      read: (key, call) => right.read(found(key), call),
      touch: (key, ...rest) => right.touch(found(key), ...rest),
      delete: (key, call) => right.delete(found(key), call),
    }
  }
const like = (pattern: string) => {
  const text = pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('_', '.')
  return new RegExp(`^${text.replaceAll('%', '.*')}$`, 's')
}

/** Takes user IDs for what `mangle` makes of them, as a column of another type does. */
const usersBy =
  (mangle: (userId: string) => string): Change =>
  ({ records }, right) => {
    const owners = (userId: string) => {
      const all = [userId, ...[...records.values()].flatMap(record => record.userId ?? [])]
      return [...new Set(all)].filter(other => mangle(other) === mangle(userId))
    }
    return {
      liveOf: (userId, kind, now) => owners(userId).flatMap(owner => right.liveOf(owner, kind, now)),
      async deleteUser(userId, options, call) {
        let ended = 0
        for (const owner of owners(userId)) ended += await right.deleteUser(owner, options, call)
        return ended
      },
    }
  }

/** Does this once a record was admitted, in place of another or not. */
const admitting =
  (then: (store: RightStore, record: SessionRecord, old: SessionRecord | undefined) => unknown): Change =>
  (store, right) => ({
    admit(record, options, old, now) {
      const outcome = right.admit(record, options, old, now)
      if (outcome === 'created') then(store, record, old)
      return outcome
    },
  })
/** Keeps in place of a new record what `mangle` makes of it. */
const keeping = (mangle: (record: SessionRecord) => Partial<SessionRecord>): Change =>
  admitting(({ records }, record) => records.set(record.key, { ...record, ...mangle(record) }))

const ownOf = ({ records }: RightStore, userId: string) =>
  [...records.values()].filter(record => record.userId === userId)

/** Ends all sessions of a user but these. */
const sparing =
  (spares: (record: SessionRecord, now: number) => boolean): Change =>
  (store, right) => ({
    async deleteUser(userId, options, call) {
      const spared = ownOf(store, userId).filter(record => spares(record, call.now))
      const ended = await right.deleteUser(userId, options, call)
      for (const record of spared) store.records.set(record.key, record)
      return ended
    },
  })

/** Faults of one call, and of calls at once. */
export const WRITING = faults({
  // What is alive.
  'updates by an upsert': [
    ({ records, forwards }, right) => ({
      async update(key, version, change, call) {
        const answer = await right.update(key, version, change, call)
        if (answer !== 'gone' || forwards.has(key)) return answer
        const identity = { kind: 'session', parent: null, userId: null, userName: null, passwordVersion: null } as const
        const times = { createdAt: call.now, absoluteExpiresAt: change.expiresAt }
        records.set(key, { key, ...identity, ...times, ...change, version: version + 1 })
        return 'updated'
      },
    }),
    'finds nothing under a key that was never stored',
    'answers gone to an update of a session that has expired, and does not revive it',
    'answers gone to an update of a session that was ended, and does not revive it',
    LATE_UPDATE,
  ],
  'updates in two steps, a read and a write': [
    (store, right) => ({
      async update(key, version, change, { now }) {
        const live = right.live(key, now)
        if (live === undefined) return 'gone'
        if (live.version !== version) return 'conflict'
        await turn()
        const { data, writeId, seenAt, expiresAt } = change
        store.records.set(key, { ...right.raised(live, seenAt, expiresAt), data, writeId, version: version + 1 })
        return 'updated'
      },
    }),
    LATE_UPDATE,
    'does not let a late update or touch revive a session while its user is logged out everywhere',
    INCREMENTS,
  ],
  'touches what has expired': [
    ({ records }, right) => ({
      async touch(key, seenAt, expiresAt) {
        const record = records.get(key)
        if (record === undefined) return 'gone'
        records.set(key, right.raised(record, seenAt, expiresAt))
        return 'touched'
      },
    }),
    'answers gone to a touch of a session that has expired or was ended, and does not revive it',
  ],
  'ignores the expiry': [
    ({ records }) => ({ live: key => records.get(key) }),
    'accepts a session that has already expired and does not show it',
    'answers gone, and leaves nothing behind, where the old session is absent, expired or ended',
    TO_MILLISECOND,
  ],
  'asks its own clock': [
    (_, right) => ({
      live: key => right.live(key, Date.now()),
      liveOf: (userId, kind) => right.liveOf(userId, kind, Date.now()),
    }),
    TO_MILLISECOND,
    'keeps the session of a node whose clock is an hour behind alive for that node',
  ],
  'removes what looks expired to the reader': [
    ({ records }, right) => ({
      async read(key, call) {
        const found = await right.read(key, call)
        if (found === null) records.delete(key)
        return found
      },
    }),
    'does not end the sessions of other nodes when the clock of one is an hour ahead',
  ],
  'prolongs a session by reading it': [
    (store, right) => ({
      async read(key, call) {
        const live = store.live(key, call.now)
        if (live !== undefined) store.records.set(key, right.raised(live, call.now, call.now + 1_800_000))
        return right.read(key, call)
      },
    }),
    'does not prolong a session by reading or listing it',
  ],
  'extends beyond the absolute expiry': [
    (_, right) => ({
      raised: (record, seenAt, expiresAt) => ({
        ...right.raised(record, seenAt, expiresAt),
        expiresAt: Math.max(record.expiresAt, expiresAt),
      }),
    }),
    'never extends a session beyond its absolute expiry by an update',
    'never extends a session beyond its absolute expiry by a touch',
  ],
  'lets the last clock win in a touch': [
    () => ({
      raised: (record, seenAt, expiresAt) => ({
        ...record,
        seenAt,
        expiresAt: Math.min(expiresAt, record.absoluteExpiresAt),
      }),
    }),
    'never lowers seenAt or expiresAt in an update',
    'never lowers seenAt or expiresAt by a touch, each by itself',
    'does not shorten or extend a session when a node whose clock is an hour behind writes to it',
  ],
  'begins a write after its deadline': [
    (_, right) => ({
      async create(record, call) {
        await turn()
        return right.create(record, call)
      },
    }),
    'begins no write after its deadline: a call that comes late rejects, and writes nothing',
  ],
  'sweeps all at once': [(_, right) => ({ sweep: (_, call) => right.sweep(Number.POSITIVE_INFINITY, call) }), SWEEP],
  'keeps seconds': [
    keeping(({ createdAt, absoluteExpiresAt }) => ({
      createdAt: createdAt - (createdAt % 1000),
      absoluteExpiresAt: absoluteExpiresAt - (absoluteExpiresAt % 1000),
    })),
    'keeps instants to the millisecond, from the epoch to the last one there is',
  ],
  'raises by a touch when a session was seen, and not its expiry': [
    (_, right) => ({ touch: (key, seenAt, _, call) => right.touch(key, seenAt, 0, call) }),
    'raises seenAt and expiresAt by a touch and changes nothing else',
  ],
  'answers gone to a touch that changes nothing': [
    ({ records }, right) => ({
      async touch(key, seenAt, expiresAt, call) {
        const before = records.get(key)
        const isSame = before?.seenAt === seenAt && before.expiresAt === expiresAt
        return isSame ? 'gone' : right.touch(key, seenAt, expiresAt, call)
      },
    }),
    'answers touched to a touch that changes nothing',
  ],
  // New IDs.
  'always leaves a forward': [
    (_, right) => ({
      admit: (record, { forward = { salt: '', until: 0 } }, ...rest) => right.admit(record, { forward }, ...rest),
    }),
    'leaves nothing under the old key without a forward: ending the old one does not end the new one',
  ],
  'leaves no forward': [
    (_, right) => ({ admit: (record, _options, old, now) => right.admit(record, {}, old, now) }),
    'keeps a forward for seven minutes after the replace, or after its until where that is later',
    'ends the successor when the old session is ended through a forward',
    'leaves a forward that read reports with its salt and its until',
    BOTH_AT_ONCE,
  ],
  'follows eight forwards': [
    ({ records, forwards }) => {
      const end = (key: string, hops: number): boolean => {
        const left = forwards.get(key)
        if (left === undefined) return records.delete(key)
        forwards.delete(key)
        return hops < 8 && end(left.forward.movedTo, hops + 1)
      }
      return { delete: async key => end(key, 0) }
    },
    CHAIN,
  ],
  'leaves the replaced session alive': [
    admitting(({ records }, _, old) => old && records.set(old.key, old)),
    'turns an anonymous session into a login of any user, wherever that user is kept',
    'answers gone to a second replace of the same session: it has one successor',
    'answers gone to update, touch and replace of a key under which a forward stands',
    'lists the last successor of a session and no forward',
    'ends the successors of replaced sessions with the user',
    'ends the old session and makes the new one live in a replace',
  ],
  'ends the old session before the new one is admitted': [
    ({ records }, right) => ({
      admit(record, options, old, now) {
        if (old !== undefined) records.delete(old.key)
        return right.admit(record, options, old, now)
      },
    }),
    'answers collision to a replace whose new key is taken, and keeps both sessions as they are',
    STALE_REPLACE,
  ],
  'keeps what was ended in the index of the user': [
    (store, right) => {
      const index = new Map<string, SessionRecord>()
      return {
        ...admitting((_, record) => index.set(record.key, record))(store, right),
        listUser: async (userId, kind, { now }) =>
          [...index.values()].filter(each => each.userId === userId && each.kind === kind && each.expiresAt > now),
      }
    },
    'lets no login escape the index of its user while the user is logged out everywhere',
    'ends all sessions and series of a user and counts the live sessions',
    'ends a session once, and says so',
    "moves a session from one user to another: it leaves the first one's list",
  ],
  'says of every session that it ended it': [
    (_, right) => ({ delete: (key, call) => right.delete(key, call).then(() => true) }),
    'ends a session once, and says so',
  ],
  'says that it ended a session that was replaced': [
    (_, right) => {
      const replaced = new Set<string>()
      return {
        admit(record, options, old, now) {
          if (old !== undefined && options.forward === undefined) replaced.add(old.key)
          return right.admit(record, options, old, now)
        },
        delete: async (key, call) => (await right.delete(key, call)) || replaced.has(key),
      }
    },
    'leaves nothing under the old key without a forward: ending the old one does not end the new one',
  ],
  // Versions and repetitions.
  'counts a touch as a change': [
    ({ records }, right) => ({
      async touch(key, ...rest) {
        const outcome = await right.touch(key, ...rest)
        const record = records.get(key)
        if (outcome === 'touched') records.set(key, { ...record!, version: record!.version + 1 })
        return outcome
      },
    }),
    'updates by the version that was read before a touch: a touch does not change it',
  ],
  'forgets the password version in an update': [
    ({ records }, right) => ({
      async update(key, ...rest) {
        const outcome = await right.update(key, ...rest)
        if (outcome === 'updated') records.set(key, { ...records.get(key)!, passwordVersion: null })
        return outcome
      },
    }),
    'writes data and write ID, counts the version up and leaves the rest of the record alone',
  ],
  'replaces a session that nobody has changed, and no other': [
    (_, right) => ({
      replace: async (key, version, ...rest) => (version > 1 ? 'conflict' : right.replace(key, version, ...rest)),
    }),
    'replaces an updated session by its current version',
  ],
  'does not compare versions in an update': [
    ({ records }, right) => ({
      update: (key, version, ...rest) => right.update(key, records.get(key)?.version ?? version, ...rest),
    }),
    'answers conflict to a repeated update that another update has followed, and loses nothing',
    'answers conflict to an update of another version and changes nothing',
    INCREMENTS,
    'lets one of two updates of one version win',
  ],
  'replaces without a version': [
    ({ records }, right) => ({
      replace: (key, version, ...rest) => right.replace(key, records.get(key)?.version ?? version, ...rest),
    }),
    'answers conflict to a replace of another version, also to a login from it, and changes nothing',
    'does not lose an acknowledged update while an anonymous session becomes a login',
  ],
  'replaces in two steps': [
    (store, right) => ({
      async replace(oldKey, oldVersion, record, options, { now }) {
        if (right.isRepetition(record)) return 'created'
        const old = right.live(oldKey, now)
        if (old === undefined) return 'gone'
        if (old.version !== oldVersion) return 'conflict'
        await turn()
        return store.admit(record, options, old, now)
      },
    }),
    BOTH_AT_ONCE,
    'gives a session one successor when it is replaced 20 times at once',
    'lets no successor of a session survive a logout everywhere without a password version',
  ],
  'ignores write IDs': [
    ({ records }, right) => ({
      isRepetition: () => false,
      async update(key, version, change, call) {
        const live = right.live(key, call.now)
        if (live !== undefined && live.version !== version) return 'conflict'
        return right.update(key, version, change, call)
      },
      async replace(oldKey, oldVersion, record, options, call) {
        if (!records.has(record.key)) return right.replace(oldKey, oldVersion, record, options, call)
        return right.live(oldKey, call.now) === undefined ? 'gone' : 'collision'
      },
    }),
    'answers created to a repeated create although the minimum password version has risen meanwhile',
    'answers created again when the same create is repeated, and keeps one session',
    'answers updated again when the same update is repeated, also after a touch, and counts it once',
    'answers created again when the same replace is repeated',
    'counts a write once that arrives five times at once with one write ID',
  ],
  "takes another user's session for a repetition by its write ID": [
    ({ records }) => ({ isRepetition: ({ key, writeId }) => records.get(key)?.writeId === writeId }),
    ...TWINS,
  ],
  'takes an update of another version for a repetition by its write ID': [
    (_, right) => ({
      async update(key, version, change, call) {
        if (right.live(key, call.now)?.writeId === change.writeId) return 'updated'
        return right.update(key, version, change, call)
      },
    }),
    'answers conflict to an update of another version that has the write ID of the last one',
  ],
  'overwrites on create': [
    ({ records, forwards }, right) => ({
      create(record, call) {
        records.delete(record.key)
        forwards.delete(record.key)
        return right.create(record, call)
      },
    }),
    'answers collision where the key is taken, and leaves the session there alone',
    'answers collision where a forward stands under the key, and leaves the forward alone',
  ],
  'does not look for the parent': [
    ({ records }, right) => ({
      admit(record, ...rest) {
        const outcome = right.admit({ ...record, parent: null }, ...rest)
        if (outcome === 'created') records.set(record.key, record)
        return outcome
      },
    }),
    'takes any live record for a parent: a series is created from the session that asked for it',
    'answers orphan to a replace that gives a session a parent which is gone',
    'answers orphan where the parent was never stored, has expired, has ended or moved on, and writes nothing',
  ],
  'looks for the parent before it writes': [
    (store, right) => ({
      async create(record, call) {
        const { parent } = record
        if (parent !== null && store.live(parent, call.now) === undefined) return right.create(record, call)
        for (let turns = 0; turns < 3; turns++) await turn()
        const outcome = await right.create({ ...record, parent: null }, call)
        if (outcome === 'created') store.records.set(record.key, record)
        return outcome
      },
    }),
    'lets no session begin unseen with a series that is being ended',
  ],
  'hands out its own objects': [
    (_, right) => ({ read: async (key, call) => right.live(key, call.now) ?? right.read(key, call) }),
    'is not changed by a caller who changes the objects that it got',
  ],
  "keeps the caller's objects": [
    admitting(({ records }, record) => records.set(record.key, record)),
    'is not changed by a caller who changes the objects that it passed',
  ],
  'asks a replacement of the same parent for it once more': [
    (_, right) => ({
      admit: (record, options, old, now) => right.admit(record, options, old && { ...old, parent: null }, now),
    }),
    'replaces a session of the same parent although the parent is gone: only a new session needs it',
  ],
  'looks for the parent before all else': [
    (store, right) => ({
      admit(record, ...rest) {
        if (record.parent !== null && store.live(record.parent, rest[2]) === undefined) return 'orphan'
        return right.admit(record, ...rest)
      },
    }),
    'decides in the order collision, stale login, orphan',
    ORDER,
  ],
  'changes the objects that it handed out': [
    ({ records }, right) => ({
      find: async (key, call) => right.live(key, call.now) ?? right.find(key, call),
      async update(key, ...rest) {
        const before = records.get(key)
        const outcome = await right.update(key, ...rest)
        if (outcome === 'updated') records.set(key, Object.assign(before!, records.get(key)))
        return outcome
      },
    }),
    'does not change what a caller got earlier',
  ],
  // Names, text and numbers.
  'forgets the parent of a session': [
    keeping(() => ({ parent: null })),
    'creates a session whose parent is alive, and keeps the parent in the record',
  ],
  'keeps a series as a session': [
    keeping(() => ({ kind: 'session' })),
    'reads back a session of a user or a visitor, and a remember-me series, exactly as it was created',
    'lists the live sessions of a user exactly, and the series apart from them',
  ],
  'takes an empty name for none': [
    keeping(({ userName }) => ({ userName: userName || null })),
    'keeps names of any well-formed text without NUL unchanged, the empty one included',
  ],
  'cuts write IDs at 16 characters': [
    keeping(({ writeId }) => ({ writeId: writeId.slice(0, 16) })),
    'keeps write IDs of 8 and of 32 characters',
  ],
  'finds a user in an object in which nobody put one': [
    keeping(({ userId }) => (userId !== null && userId in {} ? { userId: null, userName: null } : {})),
    'takes the names of object properties for ordinary user IDs',
  ],
  'draws another shard for each session': [
    () => {
      let drawn = 100
      return { shard: () => `${drawn++}` }
    },
    'puts the sessions of one user on one shard, in 3 characters of an ID',
  ],
  'takes all users for one': [
    usersBy(() => ''),
    ...['0', '1', '9007199254740991', '9007199254740993', '9223372036854775807'].map(user),
  ],
  'finds a record by the beginning of its key': [
    keyedBy((stored, key) => stored.startsWith(key)),
    KEYS_APART,
    MALFORMED,
  ],
  'looks keys up by LIKE': [keyedBy((stored, key) => like(key).test(stored)), KEYS_APART, MALFORMED],
  'ignores case in keys': [keyedBy((stored, key) => stored.toLowerCase() === key.toLowerCase()), KEYS_APART],
  'cuts keys to the 43 characters of a raw session ID': [
    keyedBy((stored, key) => stored.slice(0, 43) === key.slice(0, 43)),
    KEYS_APART,
  ],
  'accepts a raw session ID, with which a key shares its first 3 characters, for a key': [
    keyedBy((stored, key) => stored.slice(0, 3) === key.slice(0, 3)),
    KEYS_APART,
  ],
  'keeps user IDs in a signed column': [
    keeping(({ userId }) =>
      userId !== null && /^\d+$/.test(userId) ? { userId: `${BigInt.asIntN(64, BigInt(userId))}` } : {},
    ),
    user('9223372036854775808'),
    user('18446744073709551614'),
    user('18446744073709551615'),
  ],
  'takes user IDs for doubles': [
    usersBy(userId => String(Number(userId))),
    user('18446744073709551614'),
    'logs out one user of a pair of neighbouring 64-bit user IDs and refuses the old password of that one only',
  ],
  'takes user 0 for an anonymous visitor': [
    keeping(({ userId }) => (userId === '0' ? { userId: null, userName: null } : {})),
    user('0'),
  ],
  'ignores case in user IDs': [usersBy(userId => userId.toLowerCase()), USERS_APART],
  'folds accents in user IDs': [usersBy(userId => userId.normalize('NFC')), USERS_APART],
  'cuts user IDs to 191 characters': [usersBy(userId => userId.slice(0, 191)), USERS_APART],
  // No character outside of the basic plane counts as one there.
  'cuts user IDs at 200 bytes': [usersBy(userId => Buffer.from(userId).subarray(0, 200).toString()), USERS_APART],
  'trims text': [
    keeping(({ data }) => ({ data: data.trimEnd() })),
    'keeps data of any well-formed text without NUL unchanged',
  ],
  'keeps 64 KiB of data': [
    keeping(({ data }) => ({ data: data.slice(0, 0xffff) })),
    'keeps as much data as an application may have, and what the manager adds, wide characters included',
  ],
  'keeps versions in a column of 16 bits': [
    (_, right) => ({
      live(key, now) {
        const live = right.live(key, now)
        return live && { ...live, version: Math.min(live.version, 0x7fff) }
      },
    }),
    'counts versions on, beyond 16 and 32 bits',
  ],
  'keeps password versions in a signed column': [
    keeping(({ passwordVersion }) => (passwordVersion === null ? {} : { passwordVersion: passwordVersion | 0 })),
    'tells an absent password version from 0, and keeps the highest',
  ],
  // The minimum password version.
  'lets a minimum password version fall': [
    ({ minPasswordVersions }, right) => ({
      deleteUser(userId, options, call) {
        if (options.minPasswordVersion !== undefined) minPasswordVersions.delete(userId)
        return right.deleteUser(userId, options, call)
      },
    }),
    'never lowers a minimum password version that holds',
    UNTIL,
    'keeps the highest of the minimum password versions that are raised at once',
  ],
  'holds a minimum password version for ever': [(_, right) => ({ isStale: record => right.isStale(record, 0) }), UNTIL],
  'raises a minimum password version that has expired, and holds it on': [
    ({ minPasswordVersions }, right) => ({
      heldMinimum: userId => minPasswordVersions.get(userId),
      isStale: (record, now) =>
        (minPasswordVersions.get(record.userId ?? '')?.until ?? 0) > now && right.isStale(record, now),
    }),
    'begins anew with the minimum password version after an expired one, also with a lower one',
  ],
  'ignores the minimum password version in a replace': [
    (store, right) => ({
      admit(record, options, old, now) {
        store.isStale = old === undefined ? right.isStale : () => false
        return right.admit(record, options, old, now)
      },
    }),
    STALE_REPLACE,
    OLD_PASSWORD,
  ],
  'lets logins without a password version pass the minimum': [
    (_, right) => ({ isStale: (record, now) => record.passwordVersion !== null && right.isStale(record, now) }),
    'answers stale-login to a login whose password version is below the minimum or missing',
  ],
  'keeps a minimum password version in a signed column': [
    (_, right) => ({
      deleteUser: (userId, { minPasswordVersion, ...options }, call) =>
        right.deleteUser(
          userId,
          minPasswordVersion === undefined ? options : { ...options, minPasswordVersion: minPasswordVersion | 0 },
          call,
        ),
    }),
    'refuses no login for a minimum password version of 0, and every lower one for the highest',
  ],
  'holds no minimum password version for a user whose ID is no number': [
    (_, right) => ({ isStale: (record, now) => /^\d+$/.test(record.userId ?? '') && right.isStale(record, now) }),
    USERS_APART,
  ],
  'raises the minimum password version though none is named': [
    (_, right) => ({
      deleteUser: (userId, options, call) => right.deleteUser(userId, { minPasswordVersion: 1, ...options }, call),
    }),
    'lets the user log in again after a logout everywhere without a password version',
  ],
  // All sessions of a user.
  'ends visitors with a user': [
    ({ records }, right) => ({
      deleteUser(userId, options, call) {
        for (const record of records.values()) if (record.userId === null) records.delete(record.key)
        return right.deleteUser(userId, options, call)
      },
    }),
    'leaves other users and anonymous sessions alone when a user is logged out everywhere',
  ],
  'says that it ended a session though there was none': [
    (_, right) => ({ deleteUser: async (...args) => Math.max(1, await right.deleteUser(...args)) }),
    'ends nothing for a user who has no session',
  ],
  'spares what has expired by the clock of the caller': [
    sparing(({ expiresAt }, now) => expiresAt <= now),
    'logs a user out everywhere from a node whose clock is an hour wrong',
  ],
  'spares what would have expired without its last touch or update': [
    (store, right) => {
      const first = new Map<string, number>()
      return {
        ...admitting((_, record) => first.set(record.key, record.expiresAt))(store, right),
        ...sparing(({ key }, now) => first.get(key)! <= now)(store, right),
      }
    },
    'ends a session with its user that lives on only because it was touched or updated',
  ],
  'forgets the remember-me series when a user is logged out everywhere': [
    sparing(({ kind }) => kind === 'remember'),
    'ends all sessions and series of a user and counts the live sessions',
  ],
  'ends the sessions of a list that it read a moment ago': [
    (store, right) => ({
      async deleteUser(userId, options, call) {
        const listed = new Set(ownOf(store, userId).map(({ key }) => key))
        await turn()
        const later = ownOf(store, userId).filter(({ key }) => !listed.has(key))
        await right.deleteUser(userId, options, call)
        for (const record of later) store.records.set(record.key, record)
        return listed.size
      },
    }),
    'ends each session once when a user is logged out everywhere five times at once',
    'lets no successor of a session survive a logout everywhere without a password version',
    'lets no successor of a session survive a logout everywhere with a password version',
    'lets no session that a series starts survive a logout everywhere at the same time',
  ],
  'ends a thousand sessions of a user and no more': [
    (store, right) => ({
      async deleteUser(userId, options, call) {
        const others = ownOf(store, userId).slice(1000)
        for (const { key } of others) store.records.delete(key)
        const ended = await right.deleteUser(userId, options, call)
        for (const record of others) store.records.set(record.key, record)
        return ended
      },
    }),
    MANY_SESSIONS,
  ],
  'ignores exceptKey': [
    (_, right) => ({
      deleteUser: (userId, { exceptKey: _, ...options }, call) => right.deleteUser(userId, options, call),
    }),
    'lets update and touch of the excepted session pass below the minimum password version',
    'spares the excepted session alone, whatever its password version',
  ],
  'spares what is under the excepted key, and not its successor': [
    () => ({ successor: key => key }),
    SUCCESSOR,
    `${RENEWED} without a password version`,
  ],
  'looks for the excepted session first and ends the others later': [
    (store, right) => ({
      async deleteUser(userId, options, call) {
        const found = right.successor(options.exceptKey)
        await turn()
        store.successor = () => found
        return right.deleteUser(userId, options, call).finally(() => {
          store.successor = right.successor
        })
      },
    }),
    `${RENEWED} without a password version`,
    `${RENEWED} with a password version`,
  ],
  'ends no session where the excepted one is gone': [
    (store, right) => ({
      async deleteUser(userId, options, call) {
        const spared = right.successor(options.exceptKey)
        const isGone = spared !== undefined && store.records.get(spared)?.userId !== userId
        return isGone ? 0 : right.deleteUser(userId, options, call)
      },
    }),
    'spares no session where the excepted one or its successor was ended',
    "spares no one's session when the excepted key is another user's or unknown",
  ],
})

const OWN_KEY = 'brings each of many readers in one turn what stands under its own key'
const OWN_CLOCK = 'decides for each of many readers in one turn by its own clock'
const MANY_READERS = 'answers 1,000 and 5,000 readers in one turn, each its own'
const OWN_TIME = 'lets a reader whose time is over fail alone, in one turn with others'
const CORRUPT_TO_OWN = 'reports a corrupted record to its own readers alone, in one turn with others'
const CORRUPT_ONCE = 'reports a corrupted record once, without its content, and removes it'
const ACKNOWLEDGED =
  'shows a write to a reader that asks after its acknowledgement, though others of that key are under way'
const VISITORS = 'shows many visitors at once what they wrote, and nothing that was never there'
const READS_FAIL = 'rejects for each of many readers in one turn while its commands fail: an outage ends no session'

/** Answers a command of several readers as `ask` does. */
const asking =
  (ask: (readers: readonly Reader[], right: RightStore) => Promise<Answer[]>): Change =>
  (_, right) => ({ ask: readers => ask(readers, right) })
/** Answers them what `change` makes of the right answers. */
const answering = (change: (answers: Answer[], readers: readonly Reader[]) => Answer[]): Change =>
  asking(async (readers, right) => change(await right.ask(readers), readers))
const isMoved = (answer: Answer) => answer !== null && 'movedTo' in answer
const isCorrupt = (answer: Answer) => answer !== null && 'corrupt' in answer
const copyOf = (answer: Answer) => answer && { ...answer }

/** Faults of reads, most of them of several that share a command. */
export const READING = faults({
  'answers readers by the position of the rows, and one is missing': [
    answering(answers => {
      const rows = answers.filter(answer => answer !== null)
      return answers.map((_, index) => rows[index] ?? null)
    }),
    OWN_KEY,
    OWN_CLOCK,
    MANY_READERS,
  ],
  'gives one object to all readers of a key': [
    answering((answers, readers) =>
      readers.map(({ key }) => answers[readers.findIndex(reader => reader.key === key)]!),
    ),
    'gives readers of one key in one turn equal answers, and to each an object of its own',
  ],
  'lets a reader join a command that is under way': [
    (_, right) => {
      const underWay = new Map<string, Promise<Answer>>()
      return {
        async read(key, call) {
          const answer = underWay.get(key) ?? right.read(key, call).finally(() => underWay.delete(key))
          underWay.set(key, answer)
          return copyOf(await answer)
        },
      }
    },
    ACKNOWLEDGED,
    VISITORS,
  ],
  'decides for all readers by the clock of the first': [
    asking((readers, right) => right.ask(readers.map(reader => ({ ...reader, call: readers[0]!.call })))),
    OWN_CLOCK,
  ],
  'decides for several readers by a clock that is a moment behind': [
    asking((readers, right) => {
      const behind = ({ now }: StoreCall) => ({ now: readers.length > 1 ? now - 1 : now })
      return right.ask(readers.map(reader => ({ ...reader, call: behind(reader.call) })))
    }),
    OWN_CLOCK,
  ],
  'answers a thousand readers in one turn and no more': [
    answering(answers => answers.map((answer, index) => (index < 1000 ? answer : null))),
    MANY_READERS,
  ],
  'finds nothing else where one session was replaced': [
    answering(answers => (answers.some(isMoved) ? answers.map(answer => (isMoved(answer) ? answer : null)) : answers)),
    OWN_KEY,
  ],
  'finds nothing for a reader whose time is over': [
    answering((answers, readers) => answers.map((answer, index) => (isLate(readers[index]!) ? null : answer))),
    OWN_TIME,
  ],
  'fails for all readers where the key of one has another shape': [
    asking(async (readers, right) => {
      if (readers.some(({ key }) => !/^[\w-]{46}$/.test(key))) throw new Error('malformed key')
      return right.ask(readers)
    }),
    'finds nothing under a key of another shape, and readers in the same turn do not notice',
  ],
  'tells all readers of one corrupted record': [
    answering(answers => {
      const told = answers.find(isCorrupt)
      return told === undefined ? answers : answers.map(() => copyOf(told))
    }),
    CORRUPT_TO_OWN,
  ],
  'finds nothing while its commands fail': [
    asking((readers, right) => right.ask(readers).catch(() => readers.map(() => null))),
    READS_FAIL,
  ],
  'takes corrupted records for sessions': [
    ({ records }) => ({
      async find(key, { now }) {
        const record = records.get(key)
        return record !== undefined && record.expiresAt > now ? { ...record } : null
      },
      liveOf: (userId, kind) => [...records.values()].filter(each => each.userId === userId && each.kind === kind),
    }),
    CORRUPT_ONCE,
    'leaves corrupted records out of the list',
  ],
  'leaves corrupted records when their user is logged out': [
    ({ records }, right) => ({
      async deleteUser(userId, options, call) {
        const damaged = [...records.values()].filter(record => record.userId === userId && corruption(record) !== null)
        const ended = await right.deleteUser(userId, options, call)
        for (const record of damaged) records.set(record.key, { ...record, version: 1 })
        return ended
      },
    }),
    'ends a session and a user although records are corrupted',
  ],
})
function isLate({ call }: Reader) {
  return (call.deadline ?? Number.POSITIVE_INFINITY) < performance.now()
}

const WALK = 'meets each live record and each forward in a walk, whatever the size of its pages'
const EXPIRED = "leaves out of a walk what has expired by the caller's clock, and removes nothing"
const UNCHANGED = 'prolongs nothing by a walk, and hands out objects that the caller may change'
const AGAIN = 'goes on from a cursor as often as it is asked to, and beside other walks'
const STANDING = 'meets in a walk whatever stands all the while, as others come, go, change and get new IDs'
const ENDS =
  'lets a walk that ends what it meets end all that existed when it began, though sessions get new IDs meanwhile'
const CORRUPT_WALK = 'leaves corrupted records out of a walk, and goes on behind them'
const WALK_FAILS = 'rejects a page where reads fail: a walk in an outage is not at its end'
const COUNT =
  'counts the live sessions of users and visitors, and neither series nor forwards nor what has expired or ended'
const COUNT_FAILS = 'rejects a count where reads fail: an outage is no count of 0'

/** Shows of each page what `show` makes of it. */
const showing =
  (show: (page: ScanPage, store: RightStore) => Partial<ScanPage>): Change =>
  (store, right) => ({
    async scan(cursor, limit, call) {
      const page = await right.scan(cursor, limit, call)
      return { ...page, ...show(page, store) }
    },
  })
const without = (left: (record: SessionRecord) => boolean) =>
  showing(({ records }) => ({ records: records.filter(record => !left(record)) }))

/** Counts what `counts` is true of. */
const counting =
  (counts: (record: SessionRecord, now: number) => boolean, more = (_: RightStore) => 0): Change =>
  store => ({
    count: async ({ now }) => [...store.records.values()].filter(each => counts(each, now)).length + more(store),
  })
const isLive = ({ expiresAt }: SessionRecord, now: number) => expiresAt > now
const isSession = (record: SessionRecord, now: number) => record.kind === 'session' && isLive(record, now)
const damagedIn = ({ records }: RightStore) => [...records.values()].filter(({ version }) => version < 0)

/** Faults of a walk over all that is stored, and of a count. Keys are random: a walk may miss its fault now and then. */
export const WALKING = faults({
  'ends a walk after its first page': [showing(() => ({ next: null })), WALK, AGAIN, STANDING, ENDS],
  'begins a walk anew with each page': [
    (_, right) => ({ scan: (_cursor, limit, call) => right.scan(null, limit, call) }),
    WALK,
    AGAIN,
  ],
  'walks over sessions alone, not over series': [without(({ kind }) => kind === 'remember'), WALK, ENDS],
  'walks over the sessions of users alone': [without(({ userId }) => userId === null), WALK, STANDING, ENDS],
  'keeps its forwards to itself in a walk': [showing(() => ({ forwards: [] })), WALK, STANDING, ENDS],
  'names as a forward whatever it meets': [
    showing(({ records, forwards }) => ({ forwards: [...forwards, ...records.map(({ key }) => key)] })),
    WALK,
  ],
  'meets what was ended in a walk': [
    ({ records }, right) => {
      const ended = new Map<string, SessionRecord>()
      return {
        delete(key, call) {
          const record = records.get(key)
          if (record !== undefined) ended.set(key, record)
          return right.delete(key, call)
        },
        async scan(cursor, limit, call) {
          const page = await right.scan(cursor, limit, call)
          return { ...page, records: [...page.records, ...ended.values()] }
        },
      }
    },
    WALK,
  ],
  'hands out its own objects in a walk': [
    showing((page, { records }) => ({ records: page.records.map(({ key }) => records.get(key)!) })),
    UNCHANGED,
  ],
  'takes a clock at 0 for none': [(_, right) => ({ live: (key, now) => right.live(key, now || Date.now()) }), EXPIRED],
  'shows corrupted records in a walk': [
    showing(({ records }, store) => ({ records: [...records, ...damagedIn(store)] })),
    CORRUPT_WALK,
  ],
  'ends a walk at a corrupted record': [
    showing((_, store) => (damagedIn(store).length > 0 ? { records: [], next: null } : {})),
    CORRUPT_WALK,
  ],
  'ends a walk, and counts nothing, where the database fails': [
    (_, right) => ({
      scan: (...args) => right.scan(...args).catch(() => ({ records: [], forwards: [], next: null })),
      count: call => right.count(call).catch(() => 0),
    }),
    WALK_FAILS,
    COUNT_FAILS,
  ],
  'counts series': [counting(isLive), COUNT],
  'counts what has expired': [counting(({ kind }) => kind === 'session'), COUNT],
  'counts users alone': [counting((record, now) => isSession(record, now) && record.userId !== null), COUNT],
  'counts forwards': [counting(isSession, ({ forwards }) => forwards.size), COUNT],
})

/** Keeps all in one file that is read and written whole, one call after the other: of this process, not of others. */
export function wholeFileStore(file: { text: string }): Store {
  const store = new ReferenceStore()
  const maps: Map<string, unknown>[] = [store.records, store.forwards, store.minPasswordVersions]
  const inFile = async (call: () => unknown) => {
    const kept: [string, unknown][][] = JSON.parse(file.text)
    for (const [index, map] of maps.entries()) {
      map.clear()
      for (const [key, value] of kept[index] ?? []) map.set(key, value)
    }
    const answer = await call()
    // Whoever reads meanwhile, reads what was there before. No timer, so that the calls of two processes always meet.
    await turn()
    file.text = JSON.stringify(maps.map(map => [...map]))
    return answer
  }
  let last: Promise<unknown> = Promise.resolve()
  return new Proxy<Store>(store, {
    get(_, name) {
      const call = Reflect.get(store, name, store)
      if (typeof call !== 'function') return call
      return (...args: unknown[]) => {
        last = last.then(() => inFile(() => call.apply(store, args)))
        return last
      }
    },
  })
}
