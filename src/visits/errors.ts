// Errors of a visit, and what each kind of server advises in them.
import { SessionError } from '../contract/errors.ts'

/** What is said in messages: only options and calls that this server has. */
export interface Advice {
  /** The function that took the options. */
  readonly where: string
  /** Options of other servers, and what to do here instead. */
  readonly lacks: Readonly<Partial<Record<'trustedProxies' | 'isSecure', string>>>
  /** What to set if a request did not come over HTTPS. */
  readonly insecure: string
  /** How a cookie gets into a response. */
  readonly send: string
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
  new SessionError('ERR_SESSION_NOT_FRESH', `this needs a password that was checked at most ${within} ago`)

export const alreadyLeft = () =>
  new SessionError(
    'ERR_SESSION_CONFLICT',
    'another request from this browser logged in or out at the same time, so no new session was created',
  )

export const tooManyCookies = (name: string) =>
  new SessionError(
    'ERR_SESSION_CONFLICT',
    `more than four cookies named ${name} came with this logout; what the first two and the last two name has ended, the rest may live (\`hostPrefix: true\` keeps other hosts from planting cookies)`,
  )

export const wrongCsrfToken = () => new SessionError('ERR_SESSION_CSRF', "the token is missing, or not this session's")
