// Log-ins that one browser sent beside each other, such as those of a double click. The browser keeps the cookie that
// arrives last, and nobody knows which one that is. So all get one session, where each would have begun the same one: of
// the same user, with the same password version, with the same data. What one has proved beyond the password, such as a
// second factor, the other must not get: cookies can be planted, so that those who share them may be two people. Where
// they differ, the earlier session ends if its cookie cannot have arrived.
import { isDeepStrictEqual } from 'node:util'
import type { SessionRecord } from '../contract/store.ts'
import { copyPlain } from '../data/plain.ts'
import type { Context } from '../manager/context.ts'
import type { LogIn } from '../manager/log-ins.ts'
import { contextOf, type SessionManager } from '../manager/manager.ts'
import { recordOf, type Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Login } from '../session/users.ts'

/** Log-ins that came with the same cookies take turns. */
export function inTurns<T>(
  context: Context<any, any, any>,
  keys: readonly string[],
  job: () => Promise<T>,
): Promise<T> {
  const [key] = keys
  if (key === undefined) return job()
  const { calls, lines } = context
  return lines.run(`log-in ${key}`, context.deadline(), job, () =>
    calls.fail('replace', 'not-applied', 'replace: earlier log-ins of this browser took all of storeTimeout'),
  )
}

/** The earlier log-in, where this one may have its session. Else `null`, and that ends if its cookie is in no head yet. */
export async function joinOrEnd<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  earlier: LogIn,
  login: Login<D, I, In>,
  remember: boolean,
): Promise<LogIn | null> {
  const context = contextOf(sessions)
  const wanted = isTwin(context, earlier, login, remember) ? dataOf(context, earlier, login) : null
  // Before it is looked at: a request that gives the session up ends it where nobody else has it.
  earlier.holders += 1
  try {
    const now = wanted === null ? null : await sessions.get(earlier.session as Session<D, I>, { touch: false })
    // Written to since, it may have proved more, too.
    if (now !== null && !context.endings.has(now) && isDeepStrictEqual(wanted, context.thaw(recordOf(now)!))) {
      earlier.session = now
      return earlier
    }
  } catch (error) {
    earlier.holders -= 1
    throw error
  }
  earlier.holders -= 1
  // What fails was told as an event.
  if (!earlier.isSent) await endLogIn(sessions, earlier).catch(() => {})
  return null
}

function isTwin<D extends object, I extends UserIds>(
  { users }: Context<D, I, any>,
  { session, token, verifiedAt }: LogIn,
  login: Login<D, I, any>,
  remember: boolean,
): boolean {
  const { user } = login
  const held = recordOf(session)
  return (
    typeof user === 'object' &&
    user !== null &&
    held !== null &&
    held.userId === users.toText(user.id) &&
    held.username === user.name &&
    held.passwordVersion === (user.passwordVersion ?? null) &&
    verifiedAt === login.verifiedAt &&
    (token !== null) === remember
  )
}

/** What a log-in would begin with in the place of an earlier one. */
function dataOf<D extends object, I extends UserIds, In extends object>(
  context: Context<D, I, In>,
  { session, before }: LogIn,
  { data }: Login<D, I, In>,
): D {
  const carry = typeof data === 'function' && before !== null ? () => data(copyPlain(before) as D) : data
  const text = context.firstData(carry === undefined ? {} : { data: carry }, null)
  return context.thaw({ ...(recordOf(session) as SessionRecord), data: text })
}

/** The same log-in; what its `data` function is given is handed to `keep`. */
export function keepingBefore<D extends object, I extends UserIds, In extends object>(
  login: Login<D, I, In>,
  keep: (before: object) => void,
): Login<D, I, In> {
  const { data } = login
  if (typeof data !== 'function') return login
  return {
    ...login,
    data: before => {
      keep(copyPlain(before))
      return data(before)
    },
  }
}

export async function endLogIn(
  sessions: SessionManager<any, any, any>,
  { session, token }: Pick<LogIn, 'session' | 'token'>,
): Promise<void> {
  await Promise.all([sessions.destroy(session), token === null ? undefined : sessions.forget(token)])
}
