// Sessions whose cookie no response carries: the browser is not logged in, the log-in answered 200, and nothing fails.
import type { Context } from '../manager/context.ts'
import type { SessionKey } from '../session/id.ts'

/** What an edge says in messages: only options and calls that it has. */
export interface Advice {
  readonly edge: string
  /** Options of other edges, and what to do here instead. */
  readonly lacks: Readonly<Partial<Record<'trustedProxies' | 'isSecure', string>>>
  /** What to set where a request did not come over HTTPS. */
  readonly insecure: string
  /** How a cookie gets into a response. */
  readonly send: string
}

export const ofVisits: Advice = {
  edge: 'openVisit',
  lacks: {
    trustedProxies: '`secure` of the request says whether it came over HTTPS',
    isSecure: '`secure` of the request says whether it came over HTTPS',
  },
  insecure: 'say so in `secure` of the request given to openVisit if it did',
  send: 'after the last verb copy `visit.headers` into the response',
}

/** Longer than a handler takes from a log-in to its response, and short enough that somebody still watches the console. */
const PATIENCE = 10_000
/** How many are watched at a time: where one is lost, others are. */
const MAX_WATCHED = 64

let watched = 0

/**
 * One timer for each cookie that is not sent yet, stopped when it is: usually within milliseconds. A
 * FinalizationRegistry would need no timer, but tells a development server with its few requests nothing for minutes.
 */
export class Watch {
  #timer: NodeJS.Timeout | null

  static start(onLost: () => void): Watch | null {
    return watched < MAX_WATCHED ? new Watch(onLost) : null
  }

  private constructor(onLost: () => void) {
    watched += 1
    this.#timer = setTimeout(() => {
      this.stop()
      onLost()
    }, PATIENCE)
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
export function tellLost(
  context: Context<any, any, any>,
  key: SessionKey,
  reason: string | null,
  advice: Advice,
): void {
  context.emit({ type: 'unsent-cookie', key, isEnded: reason !== null })
  if (warned.has(reason === null)) return
  warned.add(reason === null)
  const message =
    reason === null
      ? `a session began or got a new ID or expiry ${PATIENCE / 1000} seconds ago, and no response carries its cookie: ${advice.send}`
      : `a session began, but ${reason}, so that no cookie could be sent: the session was ended`
  process.emitWarning(message, { type: 'CoatcheckWarning', code: 'COATCHECK_UNSENT_COOKIE' })
}
