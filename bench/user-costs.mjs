// @ts-check
// What list and invalidateUser cost for a user with few or many live sessions.

import { quantile } from './rounds.mjs'
import { fixed, table, whole } from './table.mjs'

/**
 * @typedef {{ live: number, users: number, lists: number }} Shape so many users of a round with so many sessions each, and how often each is listed
 * @typedef {{ list: number, invalidate: number }} Cost µs of a call
 * @typedef {object} Asked a place with sessions
 * @property {(shape: Shape, firstUser: number, isOneUser: boolean) => Promise<Cost>} cost
 * @property {(user: number, cycles: number) => Promise<void>} cycle logins and logouts of one user
 * @property {() => Promise<void>} [settle] waits until a database has done what it left for later
 * @property {(() => Promise<unknown>) | undefined} [vacuum] removes what was deleted, where the database leaves it in its tables
 */

const ROUNDS = 10
const SHAPES = [
  { live: 1, users: 30, lists: 5 },
  { live: 100, users: 4, lists: 5 },
  { live: 10_000, users: 1, lists: 3 },
]
const AFTER_CYCLES = { live: 1, users: 30, lists: 5 }
const AT_ONCE = 50

/** @param {number} count @param {(at: number) => Promise<unknown>} make */
export async function times(count, make) {
  for (let first = 0; first < count; first += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, at) => make(first + at)))
}

/**
 * Waits until a database has done what it left for later: rows to remove, pages to write. At most a minute.
 * @param {() => number} cpu its own so far, µs
 */
export async function settled(cpu) {
  for (let quiet = 0, waited = 0; quiet < 4 && waited < 120; waited += 1) {
    const before = cpu()
    await new Promise(resolve => setTimeout(resolve, 500))
    quiet = cpu() - before < 5000 ? quiet + 1 : 0
  }
}

/**
 * Users log in, are listed and invalidated.
 * @param {{ sessions: any, cpu: () => number }} place
 * @param {Shape} shape
 * @param {number} firstUser IDs from here on are free
 * @param {boolean} isOneUser the same one again and again
 * @returns {Promise<Cost>} means
 */
export async function userCost({ sessions, cpu }, { live, users, lists }, firstUser, isOneUser) {
  const total = { list: 0, invalidate: 0 }
  for (let at = 0; at < users; at += 1) {
    const id = firstUser + (isOneUser ? 0 : at)
    await times(live, () => sessions.create({ user: { id, name: `user ${id}` } }))
    const found = await sessions.list(id)
    if (found.length !== live) throw new Error(`${found.length} sessions of ${live} are listed`)
    const before = cpu()
    for (let again = 0; again < lists; again += 1) await sessions.list(id)
    const listed = cpu()
    await sessions.invalidateUser(id)
    total.list += listed - before
    total.invalidate += cpu() - listed
  }
  return { list: total.list / users / lists, invalidate: total.invalidate / users }
}

/** @param {any} sessions @param {number} id @param {number} cycles */
export async function cycleUser(sessions, id, cycles) {
  const who = { id, name: `user ${id}` }
  await times(cycles, async () => sessions.destroy(await sessions.create({ user: who })))
}

/** @param {readonly number[]} few @param {readonly number[]} many */
function columns(few, many) {
  const ratios = many.map((value, round) => value / /** @type {number} */ (few[round]))
  const half = `${fixed(quantile(ratios, 0.25))} to ${fixed(quantile(ratios, 0.75))}`
  return [whole(quantile(few)), whole(quantile(many)), fixed(quantile(ratios)), half]
}

/**
 * Two places in turn, so that what else the machine does falls on both. The user of the last row has so many logins and
 * logouts behind him in the second.
 * @param {Asked} few
 * @param {Asked} many
 * @param {number} firstUser IDs from here on are free
 * @param {number} cycles
 * @param {number} [warmUp] so many times the usual rounds that are not counted
 */
export async function userTable(few, many, firstUser, cycles, warmUp = 1) {
  const places = [few, many]
  let user = firstUser
  const row = async (/** @type {string} */ name, /** @type {Shape} */ shape, /** @type {boolean} */ isOneUser) => {
    for (const place of places) await place.settle?.()
    const costs = places.map(() => /** @type {Cost[]} */ ([]))
    // Rounds that are not counted: code that runs for the first time is slow.
    const first = (shape.live > 1000 ? -2 : -5) * warmUp
    for (let round = first; round < ROUNDS; round += 1) {
      for (const [at, place] of places.entries()) {
        const cost = await place.cost(shape, user, isOneUser)
        if (round >= 0) costs[at]?.push(cost)
      }
      if (!isOneUser) user += shape.users
    }
    const [small = [], big = []] = costs
    const of = (/** @type {keyof Cost} */ call) =>
      columns(
        small.map(cost => cost[call]),
        big.map(cost => cost[call]),
      )
    return [name, ...of('list'), ...of('invalidate')]
  }
  const rows = []
  for (const shape of SHAPES) rows.push(await row(`${whole(shape.live)} live`, shape, false))
  await many.cycle(user, cycles)
  rows.push(await row(`1 live, after ${whole(cycles)} cycles`, AFTER_CYCLES, true))
  if (many.vacuum) {
    await many.vacuum()
    rows.push(await row('the same, after VACUUM', AFTER_CYCLES, true))
  }
  return table(
    [
      'sessions of the user',
      'list: few',
      'many',
      'ratio',
      'middle half',
      'invalidateUser: few',
      'many',
      'ratio',
      'middle half',
    ],
    rows,
  )
}
