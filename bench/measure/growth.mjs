// @ts-check
// What one store's work costs as sessions grow in number: microseconds of processor time a call, of this process and of
// the server. Of some rounds the least: a busy machine only adds.
import { countProcessorTime } from '../processors.mjs'
import { coatcheck } from '../servers/serve.mjs'
import { FILLED } from './copies.mjs'

const [name = '', speed = ''] = process.argv.slice(2)
const isQuick = speed === 'quick'
const ROUNDS = isQuick ? 1 : 4
const CALLS = isQuick ? 16 : 32
/** Of calls that add sessions to those that are counted, however few those are. */
const FEW = 4
/** @type {(whole: number[]) => number[]} */
const sizes = whole => (isQuick ? whole.slice(0, 2) : whole)
const SIZES = {
  user: sizes([10, 100, 1000, 10_000]),
  others: sizes([1000, 10_000, 100_000, 1_000_000]),
  expired: sizes([1000, 10_000, 100_000]),
  writers: sizes([10, 100, 1000]),
  ids: sizes([2, 8, 32]),
}
/** User IDs of each part; they never meet. */
const [USERS, KEPT, LOGINS, OTHERS, EXPIRED] = /** @type {const} */ ([1e8, 2e8, 3e8, 4e8, 5e8])

const { store, copy, settle, stop } = await /** @type {() => Promise<import('./copies.mjs').Filled>} */ (FILLED[name])()
const { SessionManager } = await coatcheck('index.js')
// On a busy machine a call may take long, and none is to be a touch.
const patient = { store, sweepInterval: false, storeTimeout: '2m', touchInterval: '15m', rememberFor: '30d' }
const managerOf = (/** @type {object} */ more) => new SessionManager({ ...patient, ...more })
const sessions = managerOf({})
const login = (/** @type {number} */ id) => ({ user: { id, name: `user ${id}` } })

/** @typedef {{ part: keyof typeof SIZES, title: string, sizes: readonly number[], costs: number[] }} Row */
/** @type {Row[]} */
const rows = []
/** @param {keyof typeof SIZES} part @param {string} title @param {number} size @param {number} cost */
function note(part, title, size, cost) {
  const known = rows.find(each => each.part === part && each.title === title)
  const row = known ?? { part, title, sizes: SIZES[part], costs: [] }
  if (known === undefined) rows.push(row)
  const at = SIZES[part].indexOf(size)
  row.costs[at] = Math.min(row.costs[at] ?? Number.POSITIVE_INFINITY, cost)
}

/**
 * Calls one after the other.
 * @param {keyof typeof SIZES} part @param {string} title @param {number} size
 * @param {number} times @param {(at: number) => Promise<unknown>} call
 */
async function time(part, title, size, times, call) {
  const told = countProcessorTime()
  for (let at = 0; at < times; at += 1) await call(at)
  note(part, title, size, told() / times)
}

/** A session that began with a remember token. @param {any} user */
async function rememberedOf(user) {
  const session = await sessions.create(user)
  const redeemed = await sessions.redeemRememberToken(await sessions.issueRememberToken(session))
  await sessions.destroy(session)
  return redeemed.session
}

async function growUser() {
  const limited = managerOf({ limit: { max: 100_000 } })
  const begin = async (/** @type {number} */ size) => {
    const like = await sessions.create(login(USERS + size))
    await copy({ sessions, like, count: size - 1 })
    return like
  }
  /** @type {Map<number, any>} */
  const own = new Map()
  for (const size of SIZES.user) own.set(size, await begin(size))
  for (let round = 0; round < ROUNDS; round += 1) {
    await settle()
    for (const size of SIZES.user) {
      const user = login(USERS + size)
      const { id } = user.user
      /** @type {any[]} */
      const made = []
      const again = Math.max(2, Math.min(CALLS, 1000 / size))
      await time('user', 'get', size, CALLS, () => sessions.get(own.get(size).secret))
      await time('user', 'list', size, again, () => sessions.list(id))
      await time('user', 'login', size, FEW, async () => made.push(await sessions.create(user)))
      await time('user', 'logout', size, FEW, at => sessions.destroy(made[at].secret))
      await time('user', 'login under a limit', size, FEW, async () => made.push(await limited.create(user)))
      for (const each of made.splice(0)) await sessions.destroy(each)
      for (let n = 0; n < FEW; n += 1) made.push(await rememberedOf(user))
      await time('user', 'logout, remembered', size, FEW, at => sessions.destroy(made[at].secret))
      await time('user', 'invalidateUser', size, 1, () => sessions.invalidateUser(id))
      own.set(size, await begin(size))
    }
  }
}

async function growOthers() {
  /** @type {any[]} */
  const kept = []
  const like = await sessions.create(login(KEPT))
  let there = 0
  let logins = 0
  for (const size of SIZES.others) {
    const before = heapUsed()
    await copy({ sessions, like, count: size - there, first: OTHERS + there })
    if (name === 'memory') note('others', 'heap, bytes a session', size, (heapUsed() - before) / (size - there))
    there = size
    for (let n = 0; n < 500; n += 1) kept.push(await sessions.create(login(KEPT + kept.length + 1)))
    await settle()
    for (let round = 0; round < ROUNDS; round += 1) {
      /** @type {any[]} */
      const made = []
      const one = () => kept[Math.floor(Math.random() * kept.length)].secret
      await time('others', 'get', size, 4 * CALLS, () => sessions.get(one()))
      await time('others', 'login', size, CALLS, async () => made.push(await sessions.create(login(LOGINS + ++logins))))
      await time('others', 'logout', size, CALLS, at => sessions.destroy(made[at].secret))
      if (store.sweep) await time('others', 'sweep that finds nothing', size, CALLS, () => sessions.sweep())
    }
  }
}
function heapUsed() {
  for (let times = 0; times < 3; times += 1) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function sweepExpired() {
  // Longer ago than what is kept of a user without sessions.
  let past = Date.now() - 60 * 86_400_000
  const old = managerOf({ now: () => past++ })
  for (let round = 0; round < (isQuick ? 1 : 2); round += 1)
    for (const size of SIZES.expired) {
      const like = await old.create(login(EXPIRED))
      await copy({ sessions: old, like, count: size - 1, first: EXPIRED + 1 })
      await time('expired', 'sweep', size, 1, () => sessions.sweep())
    }
}

async function addWriters() {
  const nodes = [sessions, managerOf({})]
  const session = await sessions.create(login(KEPT))
  const count = (/** @type {{ count?: number }} */ data) => {
    data.count = (data.count ?? 0) + 1
  }
  for (let round = 0; round < ROUNDS; round += 1)
    for (const size of SIZES.writers)
      for (const [title, of] of /** @type {const} */ ([
        ['all at one node', 1],
        ['at two nodes', 2],
      ]))
        await time('writers', title, size, 1, () =>
          Promise.all(Array.from({ length: size }, (_, at) => nodes[at % of].update(session, count))),
        )
}

async function chainIds() {
  for (let round = 0; round < ROUNDS; round += 1)
    for (const size of SIZES.ids) {
      const chains = []
      for (let n = 0; n < CALLS / 4; n += 1) {
        const first = await sessions.create(login(KEPT + n))
        let last = first
        for (let at = 1; at < size; at += 1) last = await sessions.regenerate(last, { grace: '2m' })
        chains.push({ first: first.secret, last })
      }
      const each = (/** @type {string} */ title, /** @type {(chain: any) => Promise<unknown>} */ call) =>
        time('ids', title, size, chains.length, at => call(chains[at]))
      await each('one more new ID', ({ last }) => sessions.regenerate(last, { grace: '2m' }))
      await each('get by the first ID', ({ first }) => sessions.get(first))
      await each('logout by the first ID', ({ first }) => sessions.destroy(first))
    }
}

for (const part of [growUser, addWriters, chainIds, growOthers, ...(store.sweep ? [sweepExpired] : [])]) {
  await part()
  process.send?.(rows)
}
await stop()
process.exit()
