// Mistakes about names and numbers: which key, which user, which password version.
import type { DeleteUserOptions, ReplaceOptions, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { pause, type WrongStore } from './wrong.ts'

/** Looks keys up by what `mangle` makes of them. */
class KeyedBy extends ReferenceStore {
  readonly #find: (store: ReferenceStore, key: string) => string
  constructor(find: (store: ReferenceStore, key: string) => string) {
    super()
    this.#find = find
  }
  override read(key: string, { now }: StoreCall) {
    return super.read(this.#find(this, key), { now })
  }
  override touch(key: string, seenAt: number, expiresAt: number, { now }: StoreCall) {
    return super.touch(this.#find(this, key), seenAt, expiresAt, { now })
  }
  override delete(key: string, call: StoreCall) {
    return super.delete(this.#find(this, key), call)
  }
}

const found = (store: ReferenceStore, matches: (key: string) => boolean, otherwise: string) =>
  [...store.records.keys()].find(matches) ?? otherwise

/** Takes user IDs for what `mangle` makes of them, as a column of another type does. */
class UsersBy extends ReferenceStore {
  readonly #mangle: (userId: string) => string
  constructor(mangle: (userId: string) => string) {
    super()
    this.#mangle = mangle
  }
  override liveOf(userId: string, kind: SessionRecord['kind'], now: number) {
    const wanted = this.#mangle(userId)
    return [...this.records.values()].filter(
      record =>
        record.userId !== null &&
        this.#mangle(record.userId) === wanted &&
        record.kind === kind &&
        record.expiresAt > now,
    )
  }
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    let ended = 0
    const mangled = this.#mangle(userId)
    const users = [...this.records.values()].map(record => record.userId)
    for (const other of new Set([userId, ...users]))
      if (other !== null && this.#mangle(other) === mangled) ended += await super.deleteUser(other, options, call)
    return ended
  }
}

// 2^64-1 written to a signed column and read back: -1.
class SignedUserIds extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const { userId } = record
    if (userId === null || !/^\d+$/.test(userId)) return super.admit(record, options, old, now)
    return super.admit({ ...record, userId: BigInt.asIntN(64, BigInt(userId)).toString() }, options, old, now)
  }
}

class UserZeroIsNobody extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const isZero = !Number(record.userId) && record.userId !== null && /^\d+$/.test(record.userId)
    return super.admit(isZero ? { ...record, userId: null, userName: null } : record, options, old, now)
  }
}

class FallingMinimum extends ReferenceStore {
  override deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    if (options.minPasswordVersion !== undefined) this.minPasswordVersions.delete(userId)
    return super.deleteUser(userId, options, call)
  }
}

class MinimumOutlivesItself extends ReferenceStore {
  override heldMinimum(userId: string) {
    return this.minPasswordVersions.get(userId)
  }
  override isStale(record: SessionRecord, now: number) {
    const { until } = this.minPasswordVersions.get(record.userId ?? '') ?? { until: 0 }
    return until > now && super.isStale(record, now)
  }
}

class MinimumForADay extends ReferenceStore {
  override deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const minPasswordVersionUntil = Math.min(options.minPasswordVersionUntil, call.now + 86_400_000)
    return super.deleteUser(userId, { ...options, minPasswordVersionUntil }, call)
  }
}

/** 40,000 written to a signed column of 16 bits. */
class VersionsOf16Bits extends ReferenceStore {
  override live(key: string, now: number) {
    const live = super.live(key, now)
    return live && { ...live, version: Math.min(live.version, 0x7fff) }
  }
}

/** No character outside of the basic plane counts as one there. */
class UserIdsOf200Bytes extends UsersBy {
  constructor() {
    super(userId => Buffer.from(userId).subarray(0, 200).toString())
  }
}

class KeepsDataOf64KiB extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    return super.admit({ ...record, data: record.data.slice(0, 0xffff) }, options, old, now)
  }
}

class MinimumForCreateOnly extends ReferenceStore {
  #replacing = false
  override isStale(record: SessionRecord, now: number) {
    return !this.#replacing && super.isStale(record, now)
  }
  override async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ) {
    this.#replacing = true
    const result = super.replace(oldKey, oldVersion, record, options, call)
    this.#replacing = false
    return result
  }
}

class MinimumForever extends ReferenceStore {
  override isStale(record: SessionRecord) {
    return super.isStale(record, 0)
  }
}

class MinimumSparesTheUnversioned extends ReferenceStore {
  override isStale(record: SessionRecord, now: number) {
    return record.passwordVersion !== null && super.isStale(record, now)
  }
}

class MinimumAfterTheEnding extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const { exceptKey, minPasswordVersionUntil } = options
    const except = exceptKey === undefined ? {} : { exceptKey }
    const ended = await super.deleteUser(userId, { minPasswordVersionUntil: minPasswordVersionUntil, ...except }, call)
    await pause()
    const keep = [...this.records.values()].filter(record => record.userId === userId)
    await super.deleteUser(userId, options, call)
    for (const record of keep) this.records.set(record.key, record)
    return ended
  }
}

class EndsByAnOldList extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const listed = [...this.records.values()].filter(record => record.userId === userId).map(({ key }) => key)
    const before = new Map(this.records)
    await pause()
    const later = [...this.records.values()].filter(({ key, userId: owner }) => owner === userId && !before.has(key))
    await super.deleteUser(userId, options, call)
    for (const record of later) this.records.set(record.key, record)
    return listed.length
  }
}

class EndsTheFirstThousand extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const own = [...this.records.values()].filter(record => record.userId === userId).slice(1000)
    for (const { key } of own) this.records.delete(key)
    const ended = await super.deleteUser(userId, options, call)
    for (const record of own) this.records.set(record.key, record)
    return ended
  }
}

class ListsOnceAndEndsInPieces extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const own = [...this.records.values()].filter(record => record.userId === userId)
    if (own.length < 1000) return super.deleteUser(userId, options, call)
    let ended = 0
    for (const [place, { key }] of own.entries()) {
      if (place % 100 === 0) await pause()
      if (this.records.delete(key)) ended++
    }
    return ended
  }
}

class SparesNobody extends ReferenceStore {
  override deleteUser(
    userId: string,
    { minPasswordVersionUntil, minPasswordVersion: passwordVersion }: DeleteUserOptions,
    call: StoreCall,
  ) {
    return super.deleteUser(
      userId,
      {
        minPasswordVersionUntil: minPasswordVersionUntil,
        ...(passwordVersion === undefined ? {} : { minPasswordVersion: passwordVersion }),
      },
      call,
    )
  }
}

class SparesTheKeyAlone extends ReferenceStore {
  override successor(key: string | undefined) {
    return key
  }
}

class SparesTheFirstSuccessor extends ReferenceStore {
  override successor(key: string | undefined) {
    return this.forwards.get(key ?? '')?.forward.movedTo ?? key
  }
}

class SparesByAnOldLook extends ReferenceStore {
  #found: string | undefined
  override successor(key: string | undefined): string | undefined {
    return this.#found ?? super.successor(key)
  }
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const found = super.successor(options.exceptKey)
    await pause()
    this.#found = found
    const ended = super.deleteUser(userId, options, call)
    this.#found = undefined
    return ended
  }
}

class EndsNobodyWithoutTheExcepted extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const spared = this.successor(options.exceptKey)
    return spared !== undefined && !this.records.has(spared) ? 0 : super.deleteUser(userId, options, call)
  }
}

class SignedPasswordVersions extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const { passwordVersion } = record
    return super.admit(
      { ...record, passwordVersion: passwordVersion === null ? null : passwordVersion | 0 },
      options,
      old,
      now,
    )
  }
}

const KEYS_APART = 'tells keys apart that differ in one character, in case or in a wildcard'
const USERS_APART = 'keeps text user IDs apart that differ in case, accent, length, wildcards or quotes'
const MANY = 'ends 1,200 sessions of one user, and what replaces them meanwhile'
const SPARES_SUCCESSOR =
  'spares the successor of the excepted session, however often it was replaced, and no other session'
const SPARES_RENEWED = 'spares the excepted session while it is being replaced, in a logout everywhere'
const like = (pattern: string) => {
  const text = pattern
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('_', '.')
    .replaceAll('%', '.*')
  return new RegExp(`^${text}$`, 's')
}
const user = (userId: string) => `keeps the sessions of user ${userId} apart from every other user's`

export const names: readonly WrongStore[] = [
  {
    mistake: 'finds a record by the beginning of its key',
    open: () => new KeyedBy((store, key) => found(store, stored => stored.startsWith(key), key)),
    caughtBy: [KEYS_APART, 'finds nothing under malformed keys and still works afterwards'],
  },
  {
    mistake: 'looks keys up by LIKE',
    open: () => new KeyedBy((store, key) => found(store, stored => like(key).test(stored), key)),
    caughtBy: [KEYS_APART, 'finds nothing under malformed keys and still works afterwards'],
  },
  {
    mistake: 'ignores case in keys',
    open: () => new KeyedBy((store, key) => found(store, k => k.toLowerCase() === key.toLowerCase(), key)),
    caughtBy: [KEYS_APART],
  },
  {
    mistake: 'cuts keys to the 43 characters of a raw session ID',
    open: () => new KeyedBy((store, key) => found(store, stored => stored.slice(0, 43) === key.slice(0, 43), key)),
    caughtBy: [KEYS_APART],
  },
  {
    mistake: 'accepts a raw session ID, with which a key shares its first 3 characters, for a key',
    open: () => new KeyedBy((store, key) => found(store, stored => stored.slice(0, 3) === key.slice(0, 3), key)),
    caughtBy: [KEYS_APART],
  },
  {
    mistake: 'keeps user IDs in a signed column',
    open: () => new SignedUserIds(),
    caughtBy: [user('9223372036854775808'), user('18446744073709551614'), user('18446744073709551615')],
  },
  {
    mistake: 'takes user IDs for doubles',
    open: () => new UsersBy(userId => String(Number(userId))),
    caughtBy: [
      user('18446744073709551614'),
      'logs out one user of a pair of neighbouring 64-bit user IDs and refuses the old password of that one only',
    ],
  },
  {
    mistake: 'takes user 0 for an anonymous visitor',
    open: () => new UserZeroIsNobody(),
    caughtBy: [user('0')],
  },
  {
    mistake: 'ignores case in user IDs',
    open: () => new UsersBy(userId => userId.toLowerCase()),
    caughtBy: [USERS_APART],
  },
  {
    mistake: 'folds accents in user IDs',
    open: () => new UsersBy(userId => userId.normalize('NFC')),
    caughtBy: [USERS_APART],
  },
  {
    mistake: 'cuts user IDs to 191 characters',
    open: () => new UsersBy(userId => userId.slice(0, 191)),
    caughtBy: [USERS_APART],
  },
  {
    mistake: 'lets a minimum password version fall',
    open: () => new FallingMinimum(),
    caughtBy: [
      'never lowers a minimum password version that holds',
      'keeps the highest of the minimum password versions that are raised at once',
    ],
  },
  {
    mistake: 'holds a minimum password version for a day',
    open: () => new MinimumForADay(),
    caughtBy: ['holds a minimum password version until the later of all minPasswordVersionUntil, and no longer'],
  },
  {
    mistake: 'keeps versions in a column of 16 bits',
    open: () => new VersionsOf16Bits(),
    caughtBy: ['counts versions on, beyond 16 and 32 bits'],
  },
  {
    mistake: 'cuts user IDs at 200 bytes',
    open: () => new UserIdsOf200Bytes(),
    caughtBy: ['keeps text user IDs apart that differ in case, accent, length, wildcards or quotes'],
  },
  {
    mistake: 'keeps 64 KiB of data',
    open: () => new KeepsDataOf64KiB(),
    caughtBy: ['keeps as much data as an application may have, and what the manager adds, wide characters included'],
  },
  {
    mistake: 'raises a minimum password version that has expired, and holds it on',
    open: () => new MinimumOutlivesItself(),
    caughtBy: ['begins anew with the minimum password version after an expired one, also with a lower one'],
  },
  {
    mistake: 'ignores the minimum password version in a replace',
    open: () => new MinimumForCreateOnly(),
    caughtBy: [
      'answers stale-login to a replace below the minimum password version, and the old session stays',
      'lets no login with the old password survive a logout everywhere at the same time',
    ],
  },
  {
    mistake: 'holds a minimum password version for ever',
    open: () => new MinimumForever(),
    caughtBy: ['holds a minimum password version until the later of all minPasswordVersionUntil, and no longer'],
  },
  {
    mistake: 'lets logins without a password version pass the minimum',
    open: () => new MinimumSparesTheUnversioned(),
    caughtBy: ['answers stale-login to a login whose password version is below the minimum or missing'],
  },
  {
    mistake: 'raises the minimum password version after it has ended the sessions',
    open: () => new MinimumAfterTheEnding(),
    caughtBy: ['lets no login with the old password survive a logout everywhere at the same time'],
  },
  {
    mistake: 'ends the sessions of a list that it read a moment ago',
    open: () => new EndsByAnOldList(),
    caughtBy: [
      'lets no successor of a session survive a logout everywhere without a password version',
      'lets no successor of a session survive a logout everywhere with a password version',
      'lets no session that a series starts survive a logout everywhere at the same time',
    ],
  },
  {
    mistake: 'ends a thousand sessions of a user and no more',
    open: () => new EndsTheFirstThousand(),
    caughtBy: [MANY],
  },
  {
    mistake: 'ends many sessions in pieces, by a list that it read before the first',
    open: () => new ListsOnceAndEndsInPieces(),
    caughtBy: [MANY],
  },
  {
    mistake: 'ignores exceptKey',
    open: () => new SparesNobody(),
    caughtBy: ['spares the excepted session alone, whatever its password version'],
  },
  {
    mistake: 'spares what is under the excepted key, and not its successor',
    open: () => new SparesTheKeyAlone(),
    caughtBy: [SPARES_SUCCESSOR, `${SPARES_RENEWED} without a password version`],
  },
  {
    mistake: 'follows the first forward of the excepted session only',
    open: () => new SparesTheFirstSuccessor(),
    caughtBy: [SPARES_SUCCESSOR],
  },
  {
    mistake: 'looks for the excepted session first and ends the others later',
    open: () => new SparesByAnOldLook(),
    caughtBy: [`${SPARES_RENEWED} without a password version`, `${SPARES_RENEWED} with a password version`],
  },
  {
    mistake: 'ends no session where the excepted one is gone',
    open: () => new EndsNobodyWithoutTheExcepted(),
    caughtBy: [
      'spares no session where the excepted one or its successor was ended',
      "spares no one's session when the excepted key is another user's or unknown",
    ],
  },
  {
    mistake: 'keeps password versions in a signed column',
    open: () => new SignedPasswordVersions(),
    caughtBy: ['tells an absent password version from 0, and keeps the highest'],
  },
]
