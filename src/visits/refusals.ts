// Errors of a visit, and what each visits object advises in them.
import { SessionError } from '../contract/errors.ts'
import type { AnyContext } from '../manager/context.ts'
import { isHeard, type RequestRefusal } from '../manager/events.ts'
import type { AnySession } from '../session/session.ts'
import type { VisitRequest } from './visit.ts'

/** What a visits object says in messages: only options and calls that it has. */
export interface Advice {
  readonly where: string
  /** Options of other visits objects, and what to do here instead. */
  readonly lacks: Readonly<Partial<Record<'trustedProxies' | 'isSecure', string>>>
  /** What to set where a request did not come over HTTPS. */
  readonly insecure: string
  /** How a cookie gets into a response. */
  readonly send: string
}

export const ofVisits: Advice = {
  where: 'openVisit',
  lacks: {
    trustedProxies: '`secure` of the request says whether it came over HTTPS',
    isSecure: '`secure` of the request says whether it came over HTTPS',
  },
  insecure: 'say so in `secure` of the request given to openVisit if it did',
  send: 'after the last verb copy `visit.headers` into the response',
}

export const crossOrigin = () =>
  new SessionError(
    'ERR_SESSION_CROSS_ORIGIN',
    'a page of another origin sent this request; list it in `trustedOrigins` if it may',
  )

export const insecure = (advice: Advice) =>
  new SessionError(
    'ERR_SESSION_INSECURE',
    `this request did not come over HTTPS; ${advice.insecure}, to do without HTTPS set \`cookie: { secure: false }\``,
  )

export const headersSent = () =>
  new SessionError(
    'ERR_SESSION_HEADERS_SENT',
    'no cookie can be sent: there is no response, or its head was sent already; begin sessions before that',
  )

export const unauthenticated = () => new SessionError('ERR_SESSION_UNAUTHENTICATED', 'no user is logged in')

export const notFresh = (within: string) =>
  new SessionError('ERR_SESSION_NOT_FRESH', `this needs a password that was verified at most ${within} ago`)

export const wrongCsrfToken = () => new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")

/** Of what anyone can write: events are logged. */
const MOST = 200
const told = (written: unknown) => String(written).slice(0, MOST)

/** Which visits have told. Not their property: all others would carry it. */
const haveTold = new WeakSet<object>()

/** An event for a request that is refused, once for each `by`, however often it is asked; `session` is the one that was found. */
export function tellRefusedRequest(
  by: object,
  context: AnyContext,
  reason: RequestRefusal,
  request: VisitRequest,
  session: AnySession | null = null,
): void {
  if (!isHeard(context.given.onEvent) || haveTold.has(by)) return
  haveTold.add(by)
  const origin = request.header('origin')
  const host = request.header('host')
  context.emit({
    type: 'request-refused',
    reason,
    key: session?.key ?? null,
    userId: session?.user?.id ?? null,
    method: told(request.method),
    origin: origin ? told(origin) : null,
    host: host ? told(host) : null,
  })
}
