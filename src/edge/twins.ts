// Log-ins that one browser sent beside each other, such as those of a double click. The browser keeps the cookie that
// arrives last, and nobody knows which one that is. So all get one session, where they are of the same user with the same
// password version: each has proved the password. Where they differ, the earlier session ends if its cookie cannot have
// arrived.
import type { Context } from '../context.ts'
import type { LogIn } from '../log-ins.ts'
import { contextOf, type SessionManager } from '../manager.ts'
import { recordOf, type Session } from '../session.ts'
import type { UserIds } from '../user-id.ts'
import type { Login } from '../users.ts'

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

/**
 * The earlier log-in, where this one may have its session: what it wants in its data is written over what is there.
 * Else `null`, and the earlier session ends if its cookie is in no head yet.
 */
export async function joinOrEnd<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  earlier: LogIn,
  login: Login<D, I, In>,
  remember: boolean,
): Promise<LogIn | null> {
  const context = contextOf(sessions)
  if (!isTwin(context, earlier, login, remember)) {
    // What fails was told as an event.
    if (!earlier.isSent) await endLogIn(sessions, earlier).catch(() => {})
    return null
  }
  const { data } = login
  const session: Session<D, I> = earlier.session
  // Before it is looked at: a request that gives the session up ends it where nobody else has it.
  earlier.holders += 1
  try {
    const now =
      data === undefined
        ? await sessions.get(session, { touch: false })
        : await sessions.update(session, draft => {
            Object.assign(draft, typeof data === 'function' ? data(structuredClone(draft)) : data)
          })
    if (now !== null && !context.endings.has(now)) {
      earlier.session = now
      return earlier
    }
  } catch (error) {
    earlier.holders -= 1
    throw error
  }
  earlier.holders -= 1
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

export async function endLogIn(
  sessions: SessionManager<any, any, any>,
  { session, token }: Pick<LogIn, 'session' | 'token'>,
): Promise<void> {
  await Promise.all([sessions.destroy(session), token === null ? undefined : sessions.forget(token)])
}
