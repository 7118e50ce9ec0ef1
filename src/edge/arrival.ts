// What a request came with, decided once, before anything is read from the store.
import type { AnyContext } from '../manager/context.ts'
import { parseToken } from '../manager/series.ts'
import { isId, type SessionId, type SessionKey } from '../session/id.ts'
import type { ParsedCookie, SessionCookie } from './cookie.ts'
import type { EdgeSetup } from './setup.ts'
import type { VisitRequest } from './visit.ts'

/**
 * What the session cookie of a request says:
 * - `'none'`: there is none.
 * - `'named'`: it names one session, which may be live or not.
 * - `'ambiguous'`: it has several different values. A sibling host can plant one, so that none of them is honoured.
 * - `'insecure'`: a Secure cookie would have come without TLS. It is not looked at.
 */
export type ArrivalState = 'none' | 'named' | 'ambiguous' | 'insecure'

// An ambiguous header may hold a thousand values. Browsers send the cookies of longer paths first, so that what a sibling
// host planted for a path stands before the user's own, and what it planted for a parent domain beside it.
const FIRST_IDS = 2
const LAST_IDS = 4
const NOT_READ: ParsedCookie = { id: null, ambiguous: false }

/** The cookies of a request: what is honoured, and what all of them name. */
export class Arrival {
  readonly state: ArrivalState
  /** The value that is honoured, as it came; `null` in every state but `'named'`. */
  readonly id: SessionId | null
  readonly #context: AnyContext
  readonly #cookie: SessionCookie
  readonly #rememberCookie: SessionCookie
  readonly #header: VisitRequest['cookie']
  #keys: readonly SessionKey[] | null = null

  constructor(context: AnyContext, { cookie, rememberCookie }: EdgeSetup, request: VisitRequest) {
    this.#context = context
    this.#cookie = cookie
    this.#rememberCookie = rememberCookie
    this.#header = request.cookie
    const isInsecure = cookie.secure && !request.secure
    const { id, ambiguous } = isInsecure ? NOT_READ : cookie.parse(this.#header)
    this.id = id
    if (isInsecure) this.state = 'insecure'
    else if (ambiguous) this.state = 'ambiguous'
    else this.state = id === null ? 'none' : 'named'
  }

  /**
   * The remember token that may start a session. Not beside ambiguous cookies: that of the session which it started would
   * not be honoured either, and each page view would start one.
   */
  get token(): string | null {
    if (this.state === 'insecure' || this.state === 'ambiguous') return null
    return this.#rememberCookie.parse(this.#header).id
  }

  /** Whether the browser has a cookie for a remember token, whatever is in it. */
  get hasToken(): boolean {
    return this.#rememberCookie.candidates(this.#header).length > 0
  }

  /** Session IDs whose sessions a log-out ends, honoured or not: all of up to 6, else the first 2 and the last 4. */
  get ids(): readonly SessionId[] {
    const ids = this.#cookie.candidates(this.#header).filter(isId)
    return ids.length <= FIRST_IDS + LAST_IDS ? ids : [...ids.slice(0, FIRST_IDS), ...ids.slice(-LAST_IDS)]
  }

  /** Remember tokens whose series a log-in or a log-out ends, honoured or not: the first and the last. */
  get tokens(): readonly string[] {
    const { namespace } = this.#context
    const tokens = this.#rememberCookie.candidates(this.#header).filter(token => parseToken(namespace, token) !== null)
    return tokens.length <= 2 ? tokens : [tokens[0]!, tokens.at(-1)!]
  }

  /** The keys of the session and of the series that the cookies name. */
  get keys(): readonly SessionKey[] {
    this.#keys ??= this.#findKeys()
    return this.#keys
  }

  #findKeys(): readonly SessionKey[] {
    const { id } = this
    const series = this.tokens.map(token => parseToken(this.#context.namespace, token)?.key ?? null)
    return [id !== null && isId(id) ? this.#context.keyOf(id) : null, ...series].filter(key => key !== null)
  }
}
