// @ts-check
// What has to end with a session, such as a socket, ends with it on every node (docs/guide/sockets.md).
/** @import { Session, SessionEvent, SessionId, SessionManager, UserIds } from 'coatcheck' */

/**
 * How nodes tell each other: what one publishes reaches the listeners of the others, as in examples/channels.mjs.
 * @typedef {object} Channel
 * @property {(text: string) => Promise<unknown>} publish
 * @property {(listener: (text: string) => void) => Promise<unknown>} subscribe
 */
/** A session of this key or user has ended: a reason to ask the store, and no more. @typedef {[key: string, user: string]} Hint */
/**
 * @template {object} D @template {UserIds} I
 * @typedef {object} Watched
 * @property {SessionId} secret the ID that the socket came with
 * @property {Session<D, I>} session
 * @property {Set<() => unknown>} ends what to call when it has ended
 * @property {NodeJS.Timeout} [timer] until it expires
 */

/** PostgreSQL carries 8,000 bytes in a message; a user ID has up to 128 characters. */
const HINTS_PER_MESSAGE = 15
/** A manager has up to 5,000 calls under way, those of requests included (`maxPendingCalls`). */
const AT_ONCE = 500
/** The longest that a timer of Node.js waits, in ms. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Give `onEvent` to the manager, then the manager to `start`.
 * @template {object} D @template {UserIds} I
 * @param {object} [options]
 * @param {Channel | undefined} [options.channel] Without one, what ends at another node is noticed here after `every`.
 * @param {number} [options.every] After how many ms the store is asked after all, whatever was told.
 * @param {(error: unknown) => unknown} [options.onError]
 */
export function watchSessions({ channel, every = 10_000, onError = console.error } = {}) {
  /** @type {Map<SessionId, Watched<D, I>>} */
  const watched = new Map()
  /** @type {SessionManager<D, I>} */
  let sessions
  /** @type {Hint[]} */
  const untold = []

  /** Asks the store, which alone decides. @param {Watched<D, I>} entry */
  async function ask(entry) {
    const live = await sessions.get(entry.secret, { touch: false })
    if (watched.get(entry.secret) !== entry) return
    if (live !== null) return awaitExpiry(Object.assign(entry, { session: live }))
    drop(entry)
    for (const each of entry.ends) Promise.resolve().then(each).catch(onError)
    entry.ends.clear()
  }
  /** @param {Watched<D, I>[]} entries */
  async function look(entries) {
    /** @type {unknown[]} */
    const errors = []
    for (let at = 0; at < entries.length; at += AT_ONCE)
      await Promise.all(entries.slice(at, at + AT_ONCE).map(entry => ask(entry).catch(error => errors.push(error))))
    // An outage is no logout: `every` asks again. One error speaks for all.
    if (errors.length > 0) onError(errors[0])
  }
  /** @param {Watched<D, I>} entry */
  function awaitExpiry(entry) {
    clearTimeout(entry.timer)
    const left = Math.max(entry.session.expiresAt - Date.now() + 1, 1000)
    entry.timer = setTimeout(look, Math.min(left, LONGEST_TIMER), [entry]).unref()
  }
  /** @param {Watched<D, I>} entry */
  function drop(entry) {
    clearTimeout(entry.timer)
    watched.delete(entry.secret)
  }
  /** @param {Hint[]} hints */
  function hear(hints) {
    const [keys, users] = [new Set(hints.map(([key]) => key)), new Set(hints.map(([, user]) => user))]
    return look([...watched.values()].filter(({ session: { key, user } }) => keys.has(key) || users.has(`${user?.id}`)))
  }
  /** What ended in one turn, here and to the others. */
  function tell() {
    const hints = untold.splice(0)
    hear(hints)
    if (!channel) return
    for (let at = 0; at < hints.length; at += HINTS_PER_MESSAGE)
      channel.publish(JSON.stringify(hints.slice(at, at + HINTS_PER_MESSAGE))).catch(onError)
  }
  /** A poll that waits for the store is not overtaken by the next. */
  const poll = () => setTimeout(() => look([...watched.values()]).finally(poll), every).unref()

  return {
    /** @param {SessionEvent<I>} event */
    onEvent(event) {
      if (event.type !== 'destroyed' && event.type !== 'invalidated' && event.type !== 'regenerated') return
      /** @type {Hint} A new ID is the business of one session. */
      const hint =
        event.type === 'regenerated' ? [event.oldKey, ''] : ['key' in event ? event.key : '', `${event.userId ?? ''}`]
      if (untold.push(hint) === 1) setImmediate(tell)
    },
    /** @param {SessionManager<D, I>} manager */
    async start(manager) {
      sessions = manager
      poll()
      // Whatever a message says, it ends nothing by itself.
      await channel?.subscribe(text => void Promise.resolve(text).then(JSON.parse).then(hear).catch(onError))
    },
    /**
     * Calls `onEnd` once when the session has ended or expired. Call what it returns when the socket has closed.
     * @param {Session<D, I>} session @param {() => unknown} onEnd
     */
    watch(session, onEnd) {
      const known = watched.get(session.secret)
      const entry = known ?? { secret: session.secret, session, ends: new Set() }
      const each = () => onEnd()
      entry.ends.add(each)
      if (known === undefined) {
        watched.set(session.secret, entry)
        look([entry]) // it may have ended since it was read
      }
      return () => {
        if (entry.ends.delete(each) && entry.ends.size === 0) drop(entry)
      }
    },
  }
}
