// Which of several session IDs counts: a change of the cookie's scope leaves one of before in the browser, and a sibling host can
// plant some, in any order.
import { isId, type SessionId } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'

/** How many values are looked up: a browser has one for each scope that the cookie has had. */
export const MOST_VALUES = 4

const NONE = { id: null, session: null, isAmbiguous: false }
/** Nobody can tell which session is the browser's own, so there is none. */
const AMBIGUOUS = { ...NONE, isAmbiguous: true }

/**
 * The session that counts, and the value that leads to it. Each of the values of a cookie is looked up, in one turn. One
 * that leads to no live session does not count, and two that lead to different ones are ambiguous. But of those that one user
 * began, the last login counts.
 */
export async function choose<S extends AnySession>(
  sessions: { get(id: SessionId, options: { touch: false }): Promise<S | null> },
  values: readonly string[],
) {
  const ids = values.filter(isId)
  if (ids.length > MOST_VALUES) return AMBIGUOUS
  const found = await Promise.all(ids.map(async id => ({ id, session: await sessions.get(id, { touch: false }) })))
  const live = found.filter((each): each is { id: SessionId; session: S } => each.session !== null)
  // Of both IDs of one session the new one: the browser needs no other cookie.
  const isNew = ({ id, session }: (typeof live)[number]) => Number(id === session.secret)
  live.sort((one, other) => other.session.createdAt - one.session.createdAt || isNew(other) - isNew(one))
  const [first, ...others] = live
  if (first === undefined) return NONE
  const { key, user } = first.session
  const isOwn = ({ session }: (typeof live)[number]) =>
    session.key === key || (user !== null && session.user?.id === user.id)
  return others.every(isOwn) ? { ...first, isAmbiguous: false } : AMBIGUOUS
}
