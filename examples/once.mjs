// @ts-check
// Work that one request does for all: of the requests of all nodes that find it due, one does it, and all get the session
// with what came of it. For the refresh of an OAuth token, which a provider takes once (docs/guide/refresh-tokens.md).
/** @import { Frozen, Session, SessionManager, UserIds } from 'coatcheck' */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { SessionStoreError } from 'coatcheck'

/** Spread it into `initial`: who does the work holds a lease on its name. @returns {{ leases: Record<string, string> }} */
export const leases = () => ({ leases: {} })

/**
 * @template {object} D
 * @typedef {object} Work
 * @property {(data: Frozen<D>) => boolean} due Whether it has to be done. It only looks.
 * @property {(data: Frozen<D>, signal: AbortSignal) => Promise<Partial<D>>} work Does it, and answers the keys to write. It has to
 *   give up when the signal does: from then on another request may begin it.
 * @property {number} [lease] How many ms it may take; another request begins it when it has seen the lease for half as long again.
 * @property {number} [wait] After how many ms a request that waits for another one rejects, with status 503.
 */

const NOT_MINE = new Error('another request has the lease')

/** What this process has under way. @type {Map<string, Promise<any>>} */
const flights = new Map()
/** When this process first saw a lease, by a clock of its own: those of other nodes may differ. @type {Map<string, number>} */
const firstSeen = new Map()

/**
 * The session once the work is no longer due, `null` if it has ended. Rejects as the work does, and with a SessionStoreError.
 * @template {ReturnType<typeof leases>} D @template {UserIds} I
 * @param {SessionManager<D, I>} sessions @param {Session<D, I>} session @param {string} name @param {Work<D>} work
 * @returns {Promise<Session<D, I> | null>}
 */
export function once(sessions, session, name, work) {
  const flight = `${session.key} ${name}`
  const running = flights.get(flight) ?? fly(sessions, session, name, work).finally(() => flights.delete(flight))
  flights.set(flight, running)
  return running
}

/**
 * @template {ReturnType<typeof leases>} D @template {UserIds} I
 * @param {SessionManager<D, I>} sessions @param {Session<D, I>} session @param {string} name @param {Work<D>} work
 */
async function fly(sessions, session, name, { due, work, lease = 10_000, wait = 20_000 }) {
  const end = performance.now() + wait
  /** @type {Session<D, I> | null} */
  let live = session
  for (let pause = 20; live !== null && due(live.data); pause = Math.min(2 * pause, 250)) {
    const held = live.data.leases[name]
    if (held === undefined || isOver(held, lease)) {
      const mine = randomUUID()
      /** @param {D} data */
      const take = data => {
        if (!due(/** @type {any} */ (data)) || data.leases[name] !== held) throw NOT_MINE
        data.leases[name] = mine
      }
      const taken = await sessions.update(live, take).catch(ignoreNotMine)
      const run = taken && (() => work(taken.data, AbortSignal.timeout(lease)))
      const written = run && (await finish(sessions, taken, name, mine, run))
      // Not again, even if it is due still: the next request may try.
      if (written !== undefined) return written
    } else if (performance.now() > end)
      throw Object.assign(new Error(`${name}: still under way elsewhere`), { status: 503, expose: false })
    else await sleep(pause * (0.5 + Math.random()))
    live = await sessions.get(live.secret, { touch: false })
  }
  return live
}

/** @param {unknown} error */
function ignoreNotMine(error) {
  if (error !== NOT_MINE) throw error
}

/** @param {string} id @param {number} lease */
function isOver(id, lease) {
  if (firstSeen.size > 1000) firstSeen.clear() // what is forgotten is over later
  if (!firstSeen.has(id)) firstSeen.set(id, performance.now())
  return performance.now() - (firstSeen.get(id) ?? 0) > 1.5 * lease
}

/**
 * Writes what came of the work, and gives the lease back. The provider will not give it again: an outage is waited for.
 * @template {ReturnType<typeof leases>} D @template {UserIds} I
 * @param {SessionManager<D, I>} sessions @param {Session<D, I>} taken @param {string} name @param {string} mine
 * @param {() => Promise<Partial<D>>} work
 */
async function finish(sessions, taken, name, mine, work) {
  const [{ value, reason }] = /** @type {any} */ (await Promise.allSettled([Promise.resolve().then(work)]))
  /** @param {D} data */
  const put = data => {
    if (data.leases[name] !== mine) throw NOT_MINE // too late, or written by the try before
    delete data.leases[name]
    Object.assign(data, value)
  }
  for (let tries = 1; ; tries += 1)
    try {
      const written = await sessions.update(taken, put).catch(ignoreNotMine)
      return reason === undefined ? written : Promise.reject(reason)
    } catch (error) {
      if (!(error instanceof SessionStoreError) || tries === 5) throw reason ?? error
      await sleep(200 * tries)
    }
}
