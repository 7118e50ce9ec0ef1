import { contextOf } from '../manager/context-of.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIdInput, UserIds } from '../session/user-id.ts'
import { checkOptions, type OptionPlace } from '../text/check-options.ts'
import type { Visit } from '../visits/visit.ts'
import type { OpenDoor } from '../visits/visit-door.ts'
import { doorOf } from './door.ts'
import type { OldSessions } from './from.ts'
import { OPTIONS, type SessionImporterOptions } from './options.ts'
import { Taking } from './taking.ts'
import { OldCookies } from './tickets.ts'

/** What `adopt` answers: to be called at the begin of each request, before anything asks the visit. */
export interface SessionImporter<I extends UserIds = 'bigint'> {
  /**
   * Takes over the session that the old cookie of this request names, so that `visit.get()` finds it and the response brings
   * our cookie; `true` where the visit got a session so. Nothing, and no store is asked, where no genuine old cookie came.
   * @throws SessionStoreError where one of both stores cannot say: answer 503, the cookies stay
   */
  // biome-ignore lint/suspicious/noExplicitAny: a visit of whichever data and user IDs: the manager is compared instead
  (visit: Visit<any, any, any>): Promise<boolean>
  /**
   * Logout-everywhere while old sessions may still come: as `sessions.invalidateUser`, and no old session of this user that
   * exists now is taken over any more, also where it is a node with another clock that sees it.
   * @throws SessionStoreError repeat it until it resolves
   */
  invalidateUser(
    userId: UserIdInput<I>,
    options?: Parameters<SessionManager<Record<string, unknown>, I>['invalidateUser']>[1],
  ): Promise<number>
}

const warned = new Set<string>()
function warnOnce(code: string, message: string): void {
  if (warned.has(code)) return
  warned.add(code)
  process.emitWarning(message, { type: 'CoatcheckWarning', code })
}

/**
 * Takes over live sessions of another library at their first request, so that a move logs no user out: a new session with a
 * new ID, as old as the old one, whose record is removed then. All requests that come with the old cookie at that moment,
 * on whichever node, find the same session; once the browser has come with the new cookie, the old one is worth nothing.
 * @throws TypeError that names the option
 */
export function sessionImporter<D extends object, I extends UserIds, In extends object, T = Record<string, unknown>>(
  sessions: SessionManager<D, I, In>,
  options: SessionImporterOptions<D, I, In, T>,
): SessionImporter<I> {
  const context = contextOf<D, I, In>(sessions)
  checkOptions(OPTIONS as OptionPlace<typeof options>, options)
  const cookies = new OldCookies(options.from as OldSessions<never>)
  const tell =
    options.onError ??
    ((error: Error) => {
      const { message, cause } = error
      // What JSON.parse says about a text shows a piece of it.
      const reason = cause instanceof Error && cause.name !== 'SyntaxError' ? `: ${cause.message}` : ''
      warnOnce('COATCHECK_IMPORT', message + reason)
    })
  const taking = new Taking<D, I, In, T>(sessions, cookies.name, options, tell)

  const adopting = async (visit: Visit): Promise<boolean> => {
    const door = doorOf(visit)
    if (contextOf(door.sessions) !== (context as object))
      throw new TypeError('import: the visit is of another SessionManager, or of another tenant of it')
    const brought = cookies.in(door.cookie)
    if (brought === null) return false
    let opened: OpenDoor
    try {
      opened = door.open()
    } catch (error) {
      // A verb of the visit says so, if the application uses one.
      if ((error as { code?: unknown } | null)?.code === 'ERR_SESSION_CROSS_ORIGIN') return false
      throw error
    }
    if (brought === 'several') {
      context.emit({ type: 'ambiguous-cookie' })
      return false
    }
    if (opened.isAmbiguous) return false
    if (opened.isInsecure) {
      const cause = `a session was not taken over, since its request did not come over HTTPS; ${opened.insecureAdvice}`
      warnOnce('COATCHECK_IMPORT_INSECURE', cause)
      return false
    }
    const remove = () => opened.remove(cookies.names, cookies.removal(opened.isCookieSecure))
    opened.onLeave(async () => {
      await taking.leave(brought, context.deadline())
      remove()
    })
    const ownKey = opened.ownKey()
    if ((await opened.own()) !== null) {
      // A slow response of the old service may have brought the cookie back. Beside nodes of it, it may be a newer one.
      if (!options.keepOld) remove()
      return false
    }
    // Its browser logged in or out a moment ago, and has another cookie by now.
    if (ownKey !== null && context.endings.isLeft(ownKey)) return false
    const taken = await taking.take(brought)
    if (taken === null) return false
    opened.bring(taken.id, taken.session, !taken.isLent)
    if (taken.session === null) return false
    if (!taken.isLent) remove()
    return true
  }
  const invalidateUser: SessionImporter<I>['invalidateUser'] = async (userId, invalidation) => {
    await taking.endUser(context.users.toText(userId), context.deadline())
    return sessions.invalidateUser(userId, invalidation as Parameters<typeof sessions.invalidateUser>[1])
  }
  return Object.assign(adopting, { invalidateUser }) as SessionImporter<I>
}
