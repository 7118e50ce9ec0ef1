// Logins that one browser sends in parallel, such as those of a double click. The browser keeps the cookie that arrives
// last, and no server knows which one that is. So all of them get one session, where each would have begun the same one:
// of the same user, with the same password version and the same data. What one has proved beyond the password, such as a
// second factor, the other must not get: cookies can be planted, so that those who share them may be two people. Where the
// logins differ, the earlier session ends if its cookie cannot have arrived.
import { isDeepStrictEqual } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import { copyPlain } from '../data/plain.ts'
import type { AnyContext, Context } from '../manager/context.ts'
import { contextOf } from '../manager/context-of.ts'
import type { LogIn } from '../manager/logins.ts'
import type { SessionManager } from '../manager/manager.ts'
import { firstData, thaw } from '../manager/records.ts'
import { lifetimeOf } from '../session/expiry.ts'
import type { SessionKey } from '../session/id.ts'
import { recordOf, type Session, type UserSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Login, Owner } from '../session/users.ts'

interface Started<D extends object, I extends UserIds> {
  readonly session: UserSession<D, I>
  readonly token: string | null
}

/** What one visit has to do with the logins of other requests of its browser. */
export class ParallelLogIns<D extends object, I extends UserIds, In extends object> {
  readonly #sessions: SessionManager<D, I, In>
  readonly #context: Context<D, I, In>
  /** The login whose session this request got. */
  #own: LogIn | null = null
  /** Of a logout: the keys that the request came with. */
  #left: readonly SessionKey[] = []

  constructor(sessions: SessionManager<D, I, In>, context: Context<D, I, In>) {
    this.#sessions = sessions
    this.#context = context
  }

  /** Logs in by `start`, after the logins that came with the same cookies; or gets the session that one of them began. */
  async logIn(
    keys: readonly SessionKey[],
    login: Login<D, I, In>,
    remember: boolean,
    start: (login: Login<D, I, In>) => Promise<Started<D, I>>,
  ): Promise<Started<D, I>> {
    const { logIns } = this.#context
    this.#own = await inTurns(this.#context, keys, async () => {
      const earlier = this.#own === null ? logIns.of(keys) : null
      // What came with this one alone, the earlier one did not end: a sibling host plants one cookie in several browsers.
      const isTwin = keys.every(key => logIns.of([key]) === earlier)
      const joined = earlier === null ? null : await joinOrEnd(this.#sessions, earlier, login, remember, isTwin)
      if (joined !== null) return joined
      const carried = earlier !== null && isTwin ? carriedFrom(this.#context, earlier, login) : null
      let before = carried
      const keeping = keepingBefore(login, carried, data => {
        before = data
      })
      const { session, token } = await start(keeping)
      const { verifiedAt, idleTimeout: idle, absoluteTimeout: absolute } = login
      const asked = { verifiedAt, idle, absolute }
      const made = { session, token, asked, before, at: performance.now(), holders: 1, isSent: false }
      logIns.add(keys, made)
      return made
    })
    const { session, token } = this.#own
    return { session: session as UserSession<D, I>, token }
  }

  /** Whether another request of this browser got the same session; then this one gives it up. */
  giveUp({ key }: Session<D, I>): boolean {
    const own = this.#own
    if (own === null || own.session.key !== key || own.holders === 1) return false
    own.holders -= 1
    return true
  }

  /** The cookie is in a head: from now on the browser may hold it. */
  noteSent(): void {
    if (this.#own !== null) this.#own.isSent = true
  }

  /** Logout: ends what parallel requests with the same cookies logged in to, before this logout or during it. */
  async end(keys: readonly SessionKey[]): Promise<void> {
    this.#left = keys
    const { logIns } = this.#context
    for (let logIn = logIns.of(keys); logIn !== null; logIn = logIns.of(keys)) {
      logIns.delete(keys)
      await endLogIn(this.#sessions, logIn)
    }
  }

  /** The head of a logout clears the cookie of a login that came later and was answered earlier: its session ends too. */
  endLate(): void {
    this.end(this.#left).catch(() => {})
  }
}

/** Logins that came with the same cookies take turns. */
function inTurns<T>(context: AnyContext, keys: readonly string[], job: () => Promise<T>): Promise<T> {
  const [key] = keys
  if (key === undefined) return job()
  const { calls, writers } = context
  return writers.run(`login ${key}`, context.deadline(), job, () =>
    calls.fail('replace', 'not-applied', 'replace: earlier logins of this browser took all of storeTimeout'),
  )
}

/**
 * The earlier login, if this one may have its session. Else `null`; then that session ends, if its cookie is in no head yet.
 * `isTwin`: this one came with no cookie that the earlier one did not come with.
 */
async function joinOrEnd<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  earlier: LogIn,
  login: Login<D, I, In>,
  remember: boolean,
  isTwin: boolean,
): Promise<LogIn | null> {
  const context = contextOf<D, I, In>(sessions)
  // What is wrong with this one is said before the earlier one ends.
  const owner = context.users.ownerOf(login, context.now())
  lifetimeOf(login, context.options)
  const wanted = isTwin && isSame(owner, earlier, login, remember) ? dataOf(context, earlier, login) : null
  // Counted before the read: a request that gives the session up meanwhile would end it, as its only holder.
  earlier.holders += 1
  try {
    const now = wanted === null ? null : await sessions.get(earlier.session as Session<D, I>, { touch: false })
    // A session that was written to since may also have proved more.
    if (now !== null && !context.endings.has(now) && isDeepStrictEqual(wanted, thaw(context, recordOf(now)!))) {
      earlier.session = now
      return earlier
    }
  } catch (error) {
    earlier.holders -= 1
    throw error
  }
  earlier.holders -= 1
  // A failure was told as an event.
  if (!earlier.isSent) await endLogIn(sessions, earlier).catch(() => {})
  return null
}

/** Whether both logins begin the same session, as far as its data does not tell. */
function isSame(
  { userId, userName, passwordVersion }: Owner,
  { session, token, asked }: LogIn,
  { verifiedAt, idleTimeout, absoluteTimeout }: Pick<Login, 'verifiedAt' | 'idleTimeout' | 'absoluteTimeout'>,
  remember: boolean,
): boolean {
  const held = recordOf(session)!
  return (
    held.userId === userId &&
    held.userName === userName &&
    held.passwordVersion === passwordVersion &&
    asked.verifiedAt === verifiedAt &&
    asked.idleTimeout === idleTimeout &&
    asked.absoluteTimeout === absoluteTimeout &&
    (token !== null) === remember
  )
}

/** The data that a login would begin with, in place of an earlier one. */
function dataOf<D extends object, I extends UserIds, In extends object>(
  context: Context<D, I, In>,
  { session, before }: LogIn,
  { data }: Login<D, I, In>,
): D {
  const carry = typeof data === 'function' && before !== null ? () => data(copyPlain(before) as D) : data
  const text = firstData(context, { ...(carry && { data: carry }) }, null)
  return thaw(context, { ...(recordOf(session) as SessionRecord), data: text })
}

/**
 * What this login may carry over, though the earlier one has ended the session that it came with: what the earlier one was
 * given. The same user has proved the same password with the same cookies, and may have clicked first.
 */
function carriedFrom<D extends object, I extends UserIds, In extends object>(
  { users }: Context<D, I, In>,
  { session, before }: LogIn,
  { user }: Login<D, I, In>,
): object | null {
  return recordOf(session)!.userId === users.toText(user.id) ? before : null
}

/** The same login; what its `data` function is given, `carried` before all else, is handed to `keep`. */
function keepingBefore<D extends object, I extends UserIds, In extends object>(
  login: Login<D, I, In>,
  carried: object | null,
  keep: (before: object) => void,
): Login<D, I, In> {
  const { data } = login
  if (typeof data !== 'function') return login
  return {
    ...login,
    data: found => {
      const before = carried === null ? found : (copyPlain(carried) as D)
      keep(copyPlain(before))
      return data(before)
    },
  }
}

async function endLogIn(
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs, since it ends sessions by their keys
  sessions: SessionManager<any, any, any>,
  { session, token }: Pick<LogIn, 'session' | 'token'>,
): Promise<void> {
  await Promise.all([sessions.destroy(session), token === null ? undefined : sessions.revokeRememberToken(token)])
}
