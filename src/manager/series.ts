import type { SessionRecord } from '../contract/store.ts'
import { keyOf, type SessionKey } from '../session/id.ts'
import type { Context } from './context.ts'

const TOKEN = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/

/** The parts of a remember token, and the key of its series; `null` for what cannot be one. */
export function parseToken(
  namespace: string | null,
  token: string,
): { key: SessionKey; selector: string; verifier: string } | null {
  const match = typeof token === 'string' && token.length === 87 ? TOKEN.exec(token) : null
  if (match === null) return null
  const [, selector, verifier] = match as unknown as [string, string, string]
  return { key: seriesKey(namespace, selector), selector, verifier }
}

/** A session ID offered as a token, or the reverse, leads nowhere. */
export const seriesKey = (namespace: string | null, selector: string): SessionKey =>
  keyOf(selector, `remember\0${namespace ?? ''}`)

/** Ends a series, and the sessions that began with its tokens; answers their keys. */
export async function endSeries(
  context: Context<any, any, any>,
  { key, userId }: Pick<SessionRecord, 'key' | 'userId'>,
  reason: 'logout' | 'revoked' | 'theft',
  deadline: number,
  exceptKey: string | null = null,
): Promise<string[]> {
  // The series first: from then on no session can begin with it, and what began before is in the list.
  context.endings.end(key, reason === 'logout' ? 'left' : 'ended', exceptKey)
  await context.calls.delete(key, { now: context.now(), deadline })
  return endChildren(context, { key, userId }, exceptKey, reason, deadline)
}

export async function endChildren(
  context: Context<any, any, any>,
  { key, userId }: Pick<SessionRecord, 'key' | 'userId'>,
  exceptKey: string | null,
  reason: 'logout' | 'revoked' | 'theft',
  deadline: number,
): Promise<string[]> {
  if (userId === null) return []
  const sessions = await context.calls.listUser(userId, 'session', { now: context.now(), deadline })
  const children = sessions.filter(session => session.parent === key && session.key !== exceptKey)
  for (const child of children) await context.end(child.key, child.userId, reason, deadline)
  return children.map(child => child.key)
}
