// A cookie that no response carries: the login answered 200 and the browser is not logged in, but nothing fails. So the
// developer is told.
import type { SessionKey } from '../session/id.ts'
import type { Advice } from './errors.ts'

/** Longer than a handler takes from a login to its response, and short enough that the developer still looks, in ms. */
const DELAY = 10_000
/** How many are watched at a time: a service that forgets one cookie forgets others too. */
const MAX_WATCHED = 64

let watched = 0

/** A timer for each cookie that is not sent yet, stopped when it is: usually within milliseconds. */
export class Watch {
  #timer: NodeJS.Timeout | null

  static start(onUnsent: () => void): Watch | null {
    return watched < MAX_WATCHED ? new Watch(onUnsent) : null
  }

  private constructor(onUnsent: () => void) {
    watched += 1
    this.#timer = setTimeout(() => {
      this.stop()
      onUnsent()
    }, DELAY)
    // A number in browsers and workers.
    this.#timer.unref?.()
  }

  stop(): void {
    if (this.#timer === null) return
    watched -= 1
    clearTimeout(this.#timer)
    this.#timer = null
  }
}

const warned = new Set<boolean>()

/** An event each time, a process warning once; `reason` says why the session has ended already. */
export function tellUnsent(
  manager: { emit(event: { type: 'unsent-cookie'; key: SessionKey; isEnded: boolean }): void },
  key: SessionKey,
  reason: string | null,
  advice: Advice,
): void {
  manager.emit({ type: 'unsent-cookie', key, isEnded: reason !== null })
  if (warned.has(reason === null)) return
  warned.add(reason === null)
  const message =
    reason === null
      ? `a session began or got a new ID or expiry ${DELAY / 1000} seconds ago, and no response carries its cookie: ${advice.send}`
      : `a session began, but ${reason}, and no cookie could be sent: the session was ended`
  process.emitWarning(message, { type: 'CoatcheckWarning', code: 'COATCHECK_UNSENT_COOKIE' })
}
