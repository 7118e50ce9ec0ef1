// What fails without a trace: the login answered 200, and the browser is not logged in. So the developer is told.
import type { SessionKey } from '../session/id.ts'
import type { Advice } from './errors.ts'

/** Longer than a handler takes from a login to its response, and short enough that the developer still looks, in ms. */
const DELAY = 10_000

const warned = new Set<string>()

function warnOnce(kind: string, code: string, message: string): void {
  if (warned.has(kind)) return
  warned.add(kind)
  process.emitWarning(message, { type: 'CoatcheckWarning', code })
}

/** A timer for a cookie that is not sent yet, cleared when it is: usually within milliseconds. */
export function watchUnsent(onUnsent: () => void): NodeJS.Timeout {
  const timer = setTimeout(onUnsent, DELAY)
  // A number in browsers and workers.
  timer.unref?.()
  return timer
}

/** No response carries a cookie. An event each time, a process warning once; `reason` says why the session has ended already. */
export function tellUnsent(
  manager: { emit(event: { type: 'unsent-cookie'; key: SessionKey; isEnded: boolean }): void },
  key: SessionKey,
  reason: string | null,
  advice: Advice,
): void {
  manager.emit({ type: 'unsent-cookie', key, isEnded: reason !== null })
  const message =
    reason === null
      ? `a session began or got a new ID or expiry ${DELAY / 1000} seconds ago, and no response carries its cookie: ${advice.send}`
      : `a session began, but ${reason}, and no cookie could be sent: the session was ended`
  warnOnce(reason === null ? 'unsent' : 'ended', 'COATCHECK_UNSENT_COOKIE', message)
}

/** The head of a response is written while a method of its visit is under way: nothing that it does can be sent. */
export function warnNotAwaited(): void {
  const message =
    'a response was sent while a method of its visit (logIn, logOut, update, …) was still under way, so its cookie may be lost: await it before you answer'
  warnOnce('not awaited', 'COATCHECK_NOT_AWAITED', message)
}
