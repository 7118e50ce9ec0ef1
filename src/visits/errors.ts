// Errors of a visit that several places throw or that give the advice of a server, and its warnings.
import { SessionError } from '../contract/errors.ts'
import type { Context } from '../manager/context.ts'
import type { SessionKey } from '../session/id.ts'
import { warnOnce } from '../text/warn-once.ts'

/** Parts of messages that name options and calls, which differ between servers. */
export interface Advice {
  /** The function that took the options. */
  readonly where: string
  /** The option to set if a request did not come over HTTPS. */
  readonly insecure: string
  /** How a cookie gets into a response, if not by `onHeadRules`. */
  readonly send?: string
}

/** A warning of the process says it too, once: an application may answer with the code alone. */
export function insecure(advice: Advice): SessionError {
  const message = `this request did not come over HTTPS; ${advice.insecure}, or to do without HTTPS set \`cookie: { secure: false }\``
  warnOnce('COATCHECK_INSECURE', `a session was refused: ${message}`)
  return new SessionError('ERR_SESSION_INSECURE', message)
}

export const headersSent = () =>
  new SessionError(
    'ERR_SESSION_HEADERS_SENT',
    'cannot set the session cookie: the response headers were already sent (or there is no response)',
  )

export const tooManyCookies = (name: string) =>
  new SessionError(
    'ERR_SESSION_CONFLICT',
    `more than four cookies named ${name} came with this logout; what the first four lead to has ended, the others may live (\`hostPrefix: true\` keeps other hosts from planting cookies)`,
  )

// These failures leave no trace: the login answered 200, and the browser is not logged in. So we warn the developer.
/** Longer than a handler takes from a login to its response, and short enough that the developer still watches, in ms. */
const DELAY = 10_000

/** Calls back until it is cleared, for a cookie that is not sent yet: usually that takes milliseconds. */
export function watchUnsent(onUnsent: () => void): NodeJS.Timeout {
  const timer = setInterval(onUnsent, DELAY)
  // A number in browsers and workers.
  timer.unref?.()
  return timer
}

/** No response carries a cookie. An event each time, a process warning once. */
export function reportUnsent(context: Context, key: SessionKey, advice: Advice): void {
  context.emit({ type: 'unsent-cookie', key })
  const message = `a session began or got a new ID or expiry ${DELAY / 1000} seconds ago, and no response carries its cookie: ${advice.send}`
  warnOnce('COATCHECK_UNSENT_COOKIE', message)
}

/** The head of a response is written while a method of its visit is under way: it may answer another user's page. */
export function warnNotAwaited(): void {
  const message =
    'a response was sent while a method of its visit (get, logIn, update, …) was still under way: `if (visit.get())` is always true, and its cookie may be lost: await it before you answer'
  warnOnce('COATCHECK_NOT_AWAITED', message)
}
