// What a request came with.
import type { AnyContext } from '../manager/context.ts'
import { parseToken } from '../manager/series.ts'
import { isId, type SessionId, type SessionKey } from '../session/id.ts'
import type { ParsedCookie, SessionCookie } from './cookie.ts'
import { tellRefusedRequest } from './refusals.ts'
import type { VisitsSetup } from './setup.ts'
import type { VisitRequest } from './visit.ts'

// An ambiguous header may hold a thousand values. Browsers send the cookies of longer paths first, so that what a sibling
// host planted for a path stands before the user's own, and what it planted for a parent domain beside it.
const FIRST_IDS = 2
const LAST_IDS = 4

/** The first and the last of different values; of a few, each once. */
const endsOf = <V>(values: readonly V[], first: number, last: number): readonly V[] => [
  ...new Set([...values.slice(0, first), ...values.slice(-last)]),
]

/** The cookies of a request: what is honoured, and what all of them name. */
export class Arrival {
  readonly #context: AnyContext
  readonly #cookie: SessionCookie
  readonly #rememberCookie: SessionCookie
  readonly #request: VisitRequest
  readonly #header: VisitRequest['cookie']
  readonly #parsed: ParsedCookie
  #isInsecure: boolean | null = null
  #keys: readonly SessionKey[] | null = null

  constructor(context: AnyContext, { cookie, rememberCookie, hasIsSecure }: VisitsSetup, request: VisitRequest) {
    this.#context = context
    this.#cookie = cookie
    this.#rememberCookie = rememberCookie
    this.#request = request
    this.#header = request.cookie
    this.#parsed = cookie.parse(this.#header)
    // The application's function is asked by each request: where it throws, that is found out before the first login.
    if (hasIsSecure) this.#isInsecure = cookie.secure && !request.secure
  }

  /**
   * Whether a Secure cookie would have come, or would go, without TLS: then none is honoured. Decided once, when it first
   * matters: most anonymous requests are never asked. It matters where a cookie came, or where a session is to begin: then
   * it is told as a refusal.
   */
  get isInsecure(): boolean {
    this.#isInsecure ??= this.#cookie.secure && !this.#request.secure
    if (this.#isInsecure) tellRefusedRequest(this, this.#context, 'insecure', this.#request)
    return this.#isInsecure
  }

  /** Several different values came. A sibling host can plant one, so that none of them is honoured. */
  get isAmbiguous(): boolean {
    return this.#parsed.ambiguous && !this.isInsecure
  }

  /** The value that is honoured, as it came: it names one session, which may be live or not. */
  get id(): SessionId | null {
    const { id } = this.#parsed
    return id === null || this.isInsecure ? null : id
  }

  /**
   * The remember token that may start a session. Not beside ambiguous cookies: that of the session which it started would
   * not be honoured either, and each page view would start one.
   */
  get token(): string | null {
    const token = this.#rememberCookie.parse(this.#header).id
    return token === null || this.isInsecure || this.isAmbiguous ? null : token
  }

  /** Whether the browser has a cookie for a remember token, whatever is in it. */
  get hasToken(): boolean {
    return this.#rememberCookie.candidates(this.#header).length > 0
  }

  /** Session IDs whose sessions a logout ends, honoured or not: all of up to 6, else the first 2 and the last 4. */
  get ids(): readonly SessionId[] {
    return endsOf(this.#cookie.candidates(this.#header).filter(isId), FIRST_IDS, LAST_IDS)
  }

  /** Remember tokens whose series a login or a logout ends, honoured or not: the first and the last. */
  get tokens(): readonly string[] {
    const { namespace } = this.#context
    const tokens = this.#rememberCookie.candidates(this.#header).filter(token => parseToken(namespace, token) !== null)
    return endsOf(tokens, 1, 1)
  }

  /** The keys of the session and of the series that the cookies name. */
  get keys(): readonly SessionKey[] {
    this.#keys ??= this.#findKeys()
    return this.#keys
  }

  #findKeys(): readonly SessionKey[] {
    const { id } = this
    const series = this.tokens.map(token => parseToken(this.#context.namespace, token)!.key)
    return id !== null && isId(id) ? [this.#context.keyOf(id), ...series] : series
  }
}
