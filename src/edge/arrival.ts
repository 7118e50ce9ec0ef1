// What the cookies of a request name, honoured or not: for log-ins and log-outs, which end it.
import type { Context } from '../manager/context.ts'
import { parseToken } from '../manager/series.ts'
import { isId, type SessionKey } from '../session/id.ts'
import type { SessionCookie } from './cookie.ts'

type Header = string | readonly string[] | null | undefined

// An ambiguous header may hold a thousand values. Browsers send the cookies of longer paths first, so that what a sibling
// host planted for a path stands before the user's own, and what it planted for a parent domain beside it.
const FIRST_IDS = 2
const LAST_IDS = 4

/** Session IDs whose sessions a log-out ends: all of up to 6, else the first 2 and the last 4. */
export function idsIn(cookie: SessionCookie, header: Header): readonly string[] {
  const ids = cookie.candidates(header).filter(isId)
  return ids.length <= FIRST_IDS + LAST_IDS ? ids : [...ids.slice(0, FIRST_IDS), ...ids.slice(-LAST_IDS)]
}

/** Remember tokens whose series a log-in or a log-out ends: the first and the last. */
export function tokensIn(context: Context<any, any, any>, cookie: SessionCookie, header: Header): readonly string[] {
  const tokens = cookie.candidates(header).filter(token => parseToken(context.namespace, token) !== null)
  return tokens.length <= 2 ? tokens : [tokens[0]!, tokens.at(-1)!]
}

/** The keys of the session and of the series. */
export function keysOf(
  context: Context<any, any, any>,
  id: string | null,
  tokens: readonly string[],
): readonly SessionKey[] {
  const series = tokens.map(token => parseToken(context.namespace, token)?.key ?? null)
  return [id !== null && isId(id) ? context.keyOf(id) : null, ...series].filter(key => key !== null)
}
