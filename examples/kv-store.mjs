// @ts-check
// A store over a database without SQL that commits several entries if none of those it was shown has changed: DynamoDB, Deno
// KV, and any other by a driver of two functions (docs/stores/your-own.md). A call reads, decides and commits. If another
// call was faster it begins again, so whatever it decides by has to be read through its transaction.
/** @import { DeleteUserOptions, Forward, ReadAnswer, RecordChange, ReplaceOptions, SessionRecord, Store, StoreCall, StoreOperation } from 'coatcheck/custom-store' */
import { setTimeout as sleep } from 'node:timers/promises'
import { corruption, FORWARD_LIFETIME, SessionStoreError, SWEEP_MARGIN } from 'coatcheck/custom-store'

/**
 * An entry as a commit gets it. Without `text` it is only checked, with `null` it is removed, else written; from `until` on,
 * epoch ms, the database may remove it. `version` is what `get` said, `null` if there was nothing; without it nothing is checked.
 * @typedef {{ key: string, version?: string | null | undefined, text?: string | null | undefined, until?: number | undefined }} Item
 */
/**
 * @typedef {object} Driver
 * @property {(keys: string[]) => Promise<{ text: string | null, version: string | null }[]>} get What stands under each key, as
 *   it was after the last commit. A version never comes back.
 * @property {(items: Item[]) => Promise<boolean>} commit All of them or none; `false` if a version is another one. At most 100.
 * @property {number} checks How many versions a commit may check, 10 or more.
 */
/** @typedef {{ forward: Forward, keptUntil: number }} KeptForward */
/** @typedef {SessionRecord | KeptForward | { corrupt: string } | null} Entry */
/** What all sessions of a user share, in one entry: so it is always of one moment, which no query of DynamoDB is.
 * `keys` has the absolute end of each. @typedef {{ keys: Record<string, number>, min: { version: number, until: number }, until: number }} User */
/** @typedef {{ operation: any, names: string[], deadline: number, work: (tx: Transaction) => Promise<any>, resolve: (answer: any) => void, reject: (error: Error) => void, answer?: any }} Job */

/** What a call checks at most, and what a piece of `deleteUser` removes. */
const CHECKS = 6
const PIECE = 40

/** @param {string} key what is no key leads to where nothing is */
const sessionAt = key => `s/${/^[\w-]{46}$/.test(key) ? key : '-'}`
/** @param {Entry} entry @returns {entry is KeptForward} */
const isForward = entry => entry !== null && 'forward' in entry
/** @param {Entry} entry @returns {entry is SessionRecord} */
const isRecord = entry => entry !== null && 'expiresAt' in entry
/** @param {Entry} entry @param {number} now @returns {entry is SessionRecord} */
const isLive = (entry, now) => isRecord(entry) && entry.expiresAt > now
/** @param {Entry} taken @param {SessionRecord} record whether a repeated call finds its own write */
const isRepetition = (taken, { writeId, userId, createdAt }) =>
  isRecord(taken) && taken.writeId === writeId && taken.userId === userId && taken.createdAt === createdAt

/** @param {string} name @param {string | null} text @returns {any} the entry of a session, or a user */
function decode(name, text) {
  // A damaged user throws: as an absent one it would hide sessions.
  if (name.startsWith('u/')) return text ? JSON.parse(text) : { keys: {}, min: { version: 0, until: 0 }, until: 0 }
  if (text === null) return null
  try {
    const entry = JSON.parse(text)
    if (isForward(entry)) return entry
    const reason = sessionAt(entry.key) === name ? corruption(entry) : 'the key is another one'
    return reason === null ? entry : { corrupt: reason }
  } catch {
    return { corrupt: 'not JSON' }
  }
}

/** What some calls read and write, in objects of their own. */
class Transaction {
  /** @type {Map<string, { value: any, version: string | null }>} */
  entries = new Map()
  /** What has to be as it was read. @type {Set<string>} */
  checked = new Set()
  /** What is written, and for how long. @type {Map<string, number>} */
  written = new Map()

  /** @param {Driver} driver */
  constructor(driver) {
    this.driver = driver
  }

  /** What stands under the names, not checked. @param {string[]} names */
  async load(names) {
    const missing = [...new Set(names)].filter(name => !this.entries.has(name))
    const found = missing.length > 0 ? await this.driver.get(missing) : []
    for (const [at, { text, version }] of found.entries())
      this.entries.set(`${missing[at]}`, { value: decode(`${missing[at]}`, text), version })
    return names.map(name => this.entries.get(name)?.value)
  }

  /** @param {string} key @returns {Promise<Entry>} */
  async session(key) {
    this.checked.add(sessionAt(key))
    return (await this.load([sessionAt(key)]))[0]
  }

  /** To be changed and written. @param {string} userId @returns {Promise<User>} */
  async user(userId) {
    this.checked.add(`u/${userId}`)
    return (await this.load([`u/${userId}`]))[0]
  }

  /** Where forwards lead, what stands there, and the keys up to this one. Forwards never change. @param {string} key @returns {Promise<{ path: string[], entry: Entry }>} */
  async follow(key, path = [key]) {
    const entry = await this.session(key)
    if (!isForward(entry)) return { path, entry }
    this.checked.delete(sessionAt(key))
    return this.follow(entry.forward.movedTo, [entry.forward.movedTo, ...path])
  }

  /** @param {string} name of what was read @param {object | null} value @param {number} [until] */
  write(name, value, until = 0) {
    this.entries.set(name, { version: null, ...this.entries.get(name), value })
    this.written.set(name, until + SWEEP_MARGIN)
  }

  /** @param {string} userId @param {User} user */
  writeUser(userId, user) {
    this.write(`u/${userId}`, user, Math.max(user.until, user.min.until))
  }

  /**
   * Removes records, and their keys from the user's entry. That is checked, so no other need be: whoever begins, moves or ends
   * a record of the user writes it too. @param {string | null} userId @param {string[]} keys
   */
  async drop(userId, keys) {
    for (const key of keys) this.write(sessionAt(key), null)
    if (userId === null || keys.length === 0) return
    const user = await this.user(userId)
    for (const key of keys) delete user.keys[key]
    this.writeUser(userId, user)
  }

  /** @returns {Item[]} */
  items() {
    const names = new Set([...this.checked, ...this.written.keys()])
    return [...names].map(key => {
      const { value, version } = this.entries.get(key) ?? { value: null, version: null }
      const text = this.written.has(key) ? value && JSON.stringify(value) : undefined
      return { key, version: this.checked.has(key) ? version : undefined, text, until: this.written.get(key) }
    })
  }
}

/** @implements {Store} */
export class KvStore {
  #driver
  /** Calls of one user wait for each other and share commits: each would only undo the others'. @type {Map<string | null, Job[]>} */
  #lanes = new Map()

  /** @param {Driver} driver */
  constructor(driver) {
    this.#driver = driver
  }

  /** @param {SessionRecord} record @param {StoreCall} call */
  create(record, call) {
    return this.#run('create', record.userId, [record.key], call, tx => admit(tx, record, call.now, null))
  }

  /** @param {string} key @param {StoreCall} call @returns {Promise<ReadAnswer>} */
  read(key, call) {
    return this.#run('read', null, [key], call, async tx => {
      const entry = await tx.session(key)
      if (isForward(entry)) return entry.keptUntil > call.now ? entry.forward : null
      if (entry !== null && 'corrupt' in entry) await tx.drop(null, [key])
      else if (!isLive(entry, call.now)) return null
      return entry
    })
  }

  /** @param {string} key @param {number} version @param {RecordChange} change @param {StoreCall} call */
  update(key, version, change, call) {
    return this.#run('update', null, [key], call, async tx => {
      const record = await tx.session(key)
      if (!isLive(record, call.now)) return 'gone'
      if (record.version !== version)
        return record.version === version + 1 && record.writeId === change.writeId ? 'updated' : 'conflict'
      extend(tx, { ...record, data: change.data, writeId: change.writeId, version: version + 1 }, change)
      return 'updated'
    })
  }

  /** @param {string} key @param {number} seenAt @param {number} expiresAt @param {StoreCall} call */
  touch(key, seenAt, expiresAt, call) {
    return this.#run('touch', null, [key], call, async tx => {
      const record = await tx.session(key)
      if (!isLive(record, call.now)) return 'gone'
      extend(tx, record, { seenAt, expiresAt })
      return 'touched'
    })
  }

  /** @param {string} oldKey @param {number} oldVersion @param {SessionRecord} record @param {ReplaceOptions} options @param {StoreCall} call */
  replace(oldKey, oldVersion, record, { forward }, call) {
    return this.#run('replace', record.userId, [record.key, oldKey], call, async tx => {
      if (isRepetition(await tx.session(record.key), record)) return 'created'
      const old = await tx.session(oldKey)
      if (!isLive(old, call.now)) return 'gone'
      if (old.version !== oldVersion) return 'conflict'
      return admit(tx, record, call.now, old, forward)
    })
  }

  /** @param {string} key @param {StoreCall} call */
  delete(key, call) {
    return this.#run('delete', null, [key], call, async tx => {
      const { path, entry } = await tx.follow(key)
      if (entry !== null || path.length > 1) await tx.drop(isRecord(entry) ? entry.userId : null, path)
      return entry !== null
    })
  }

  /** In pieces that fit into a commit. The last one leaves nothing in the list. @param {string} userId @param {DeleteUserOptions} options @param {StoreCall} call @returns {Promise<number>} */
  async deleteUser(userId, options, call) {
    const { exceptKey, minPasswordVersion: version, minPasswordVersionUntil: until } = options
    const [ended, isLast] = await this.#run('deleteUser', userId, [], call, async tx => {
      const user = await tx.user(userId)
      if (version !== undefined) {
        const held = user.min.until > call.now ? user.min : { version, until }
        user.min = { version: Math.max(held.version, version), until: Math.max(held.until, until) }
        tx.writeUser(userId, user)
      }
      // No new ID of the spared session, not seen here, can pass: it would change the user's entry.
      const spared = exceptKey && (await tx.follow(exceptKey)).path[0]
      const rest = Object.keys(user.keys).filter(key => key !== spared)
      const piece = rest.slice(0, PIECE)
      const entries = await tx.load(piece.map(sessionAt))
      await tx.drop(userId, piece)
      const ends = entries.filter(each => isLive(each, call.now) && each.kind === 'session')
      return [ends.length, piece.length === rest.length]
    })
    return isLast ? ended : ended + (await this.deleteUser(userId, options, call))
  }

  /** @param {string} userId @param {SessionRecord['kind']} kind @param {StoreCall} call */
  listUser(userId, kind, call) {
    return this.#run('listUser', null, [], call, async tx => {
      const keys = Object.keys((await tx.user(userId)).keys)
      const entries = await tx.load(keys.map(sessionAt))
      // What is gone leaves the list, if the commit says so: reads of DynamoDB may see a commit that is half done.
      const gone = keys.filter((_, at) => !isRecord(entries[at] ?? null)).slice(0, this.#driver.checks - 1)
      for (const key of gone) tx.checked.add(sessionAt(key))
      await tx.drop(userId, gone)
      return entries.filter(isRecord).filter(record => isLive(record, call.now) && record.kind === kind)
    })
  }

  /** Reads the keys at once, with those of others. @template T @param {StoreOperation} operation @param {string | null} lane @param {string[]} keys @param {StoreCall} call @param {(tx: Transaction) => Promise<T>} work @returns {Promise<T>} */
  #run(operation, lane, keys, { deadline = Number.POSITIVE_INFINITY }, work) {
    return new Promise((resolve, reject) => {
      const job = { operation, names: keys.map(sessionAt), deadline, work, resolve, reject, answer: undefined }
      const waiting = this.#lanes.get(lane)
      // Behind a call that hangs nobody waits: a commit is right without this order too.
      if (waiting?.[0] && !isLate(waiting[0])) return void waiting.push(job)
      const jobs = [job]
      if (lane !== null) this.#lanes.set(lane, jobs)
      return void this.#drain(jobs, lane)
    })
  }

  /** @param {Job[]} jobs @param {string | null} lane */
  async #drain(jobs, lane) {
    for (let tries = 0; jobs.length > 0; tries += 1) {
      const tx = new Transaction(this.#driver)
      /** @type {Job[]} */
      const taken = []
      /** @type {'not-applied' | 'unknown'} */
      let outcome = 'not-applied'
      try {
        for (const job of [...jobs]) {
          if (taken.length > 0 && (tx.checked.size > this.#driver.checks - CHECKS || isLate(job))) break
          taken.push(job)
          if (isLate(job)) break
          if (taken.length === 1) await tx.load(jobs.slice(0, this.#driver.checks).flatMap(({ names }) => names))
          job.answer = await job.work(tx)
        }
        if (taken.some(isLate)) throw new Error('no time left: others kept writing, or the database is slow')
        outcome = 'unknown'
        // What was decided by several entries holds only if they are of one moment.
        if ((tx.written.size === 0 && tx.checked.size < 2) || (await this.#driver.commit(tx.items()))) {
          for (const { resolve, answer } of jobs.splice(0, taken.length)) resolve(answer)
          tries = 0
        } else await sleep(Math.random() * Math.min(100, 2 ** tries))
      } catch (cause) {
        for (const { operation, reject } of jobs.splice(0, taken.length)) {
          // Pieces of a `deleteUser` may be gone.
          const said = operation === 'deleteUser' ? 'unknown' : outcome
          reject(new SessionStoreError(operation, said, `${operation}: the database failed`, { cause }))
        }
      }
    }
    if (this.#lanes.get(lane) === jobs) this.#lanes.delete(lane)
  }
}

/** @param {Job} job */
const isLate = ({ deadline }) => deadline <= performance.now()

/** @param {Transaction} tx @param {SessionRecord} record @param {{ seenAt: number, expiresAt: number }} change */
function extend(tx, record, change) {
  const seenAt = Math.max(record.seenAt, change.seenAt)
  const expiresAt = Math.max(record.expiresAt, Math.min(change.expiresAt, record.absoluteExpiresAt))
  tx.write(sessionAt(record.key), { ...record, seenAt, expiresAt }, expiresAt)
}

/** @param {Transaction} tx @param {SessionRecord} record @param {number} now @param {SessionRecord | null} old @param {ReplaceOptions['forward']} [forward] */
async function admit(tx, record, now, old, forward) {
  const { key, userId, parent } = record
  const taken = await tx.session(key)
  if (taken !== null) return isRepetition(taken, record) ? 'created' : 'collision'
  const user = userId === null ? null : await tx.user(userId)
  if (user && user.min.until > now && user.min.version > (record.passwordVersion ?? 0)) return 'stale-login'
  if (parent !== null && parent !== old?.parent && !isLive(await tx.session(parent), now)) return 'orphan'
  if (old !== null) await tx.drop(old.userId, [old.key])
  if (old !== null && forward !== undefined) {
    const keptUntil = Math.max(now, forward.until) + FORWARD_LIFETIME
    tx.write(sessionAt(old.key), { forward: { ...forward, movedTo: key }, keptUntil }, keptUntil)
  }
  if (userId !== null && user !== null) {
    for (const [each, end] of Object.entries(user.keys)) if (end + SWEEP_MARGIN <= now) delete user.keys[each]
    user.keys[key] = record.absoluteExpiresAt
    user.until = Math.max(user.until, record.absoluteExpiresAt)
    tx.writeUser(userId, user)
  }
  tx.write(sessionAt(key), record, record.expiresAt)
  return 'created'
}
