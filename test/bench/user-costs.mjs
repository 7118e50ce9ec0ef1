// @ts-check
// What list and invalidateUser cost for a user with few or many live sessions.
import { quantile } from './rounds.mjs'

/** How many users with so many live sessions. */
const USERS = [
  { live: 1, users: 30 },
  { live: 100, users: 5 },
  { live: 10_000, users: 1 },
]
const AT_ONCE = 50

/** @param {number} count @param {(at: number) => Promise<unknown>} make */
export async function times(count, make) {
  for (let first = 0; first < count; first += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, at) => make(first + at)))
}

/**
 * Processor time of one call, µs.
 * @param {() => number} cpu so far, µs
 * @param {() => Promise<unknown>} call
 */
async function spent(cpu, call) {
  const before = cpu()
  await call()
  return cpu() - before
}

/**
 * Of several places in turn, so that what else the machine does falls on all of them.
 * @param {readonly { sessions: any, cpu: () => number }[]} places
 * @param {number} firstUser IDs from here on are free
 * @returns {Promise<{ live: number, list: number, invalidate: number }[][]>} medians of each place, µs
 */
export async function costsByLive(places, firstUser) {
  const costs = places.map(() => /** @type {{ live: number, list: number, invalidate: number }[]} */ ([]))
  let id = firstUser
  for (const { live, users } of USERS) {
    const taken = places.map(() => ({ list: [0].slice(1), invalidate: [0].slice(1) }))
    for (let user = -1; user < users; user += 1, id += 1)
      for (const [at, { sessions, cpu }] of places.entries()) {
        const who = { id, name: `user ${id}` }
        await times(live, () => sessions.create({ user: who }))
        const found = await sessions.list(id)
        if (found.length !== live) throw new Error(`${found.length} sessions of ${live} are listed`)
        const list = []
        for (let again = 0; again < 3; again += 1) list.push(await spent(cpu, () => sessions.list(id)))
        const invalidate = await spent(cpu, () => sessions.invalidateUser(id))
        // The first user is not counted: code that runs for the first time is slow.
        if (user === -1) continue
        taken[at]?.list.push(...list)
        taken[at]?.invalidate.push(invalidate)
      }
    for (const [at, { list, invalidate }] of taken.entries())
      costs[at]?.push({ live, list: quantile(list), invalidate: quantile(invalidate) })
  }
  return costs
}

/**
 * The same for one user with one live session, before and after many cycles of log-in and log-out.
 * @param {any} sessions
 * @param {() => number} cpu
 * @param {number} id
 * @param {number} cycles
 */
export async function costsAfterCycles(sessions, cpu, id, cycles) {
  const who = { id, name: `user ${id}` }
  const measure = async () => {
    /** @type {number[]} */
    const list = []
    /** @type {number[]} */
    const invalidate = []
    for (let again = 0; again < 20; again += 1) {
      await sessions.create({ user: who })
      for (let more = 0; more < 3; more += 1) list.push(await spent(cpu, () => sessions.list(id)))
      invalidate.push(await spent(cpu, () => sessions.invalidateUser(id)))
    }
    return { list: quantile(list), invalidate: quantile(invalidate) }
  }
  await measure()
  const before = await measure()
  await times(cycles, async () => sessions.destroy(await sessions.create({ user: who })))
  return { before, after: await measure() }
}
