// Which session `invalidateUser` and `invalidateAll` spare.
import { isKey, type SessionKey } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'
import type { Rule } from '../text/check-options.ts'
import type { AnyContext } from './context.ts'
import { heldRecord } from './lookup.ts'

export const anExcept: Rule = value => {
  // Not quoted: it may be a session ID.
  if (typeof value !== 'object' && !isKey(value)) throw new TypeError('except: expected a session or its key')
}

/** @throws TypeError for a copy of a session, or another namespace's */
export function keyOfExcept(context: AnyContext, except: AnySession | SessionKey | null | undefined): string | null {
  if (except === null || except === undefined) return null
  return typeof except === 'object' ? heldRecord(context, except).key : except
}
