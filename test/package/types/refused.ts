// What TypeScript has to refuse, each for the reason that stands beside it. Checked by types.test.ts; never run.
import type { IncomingMessage } from 'node:http'
import {
  type Session,
  type SessionInfo,
  type SessionKey,
  SessionManager,
  type SessionOf,
  type Store,
  type Visit,
} from 'coatcheck'
import { SessionCookie } from 'coatcheck/custom-server'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import * as zod from 'zod'

declare const key: SessionKey
declare const request: IncomingMessage
declare const info: SessionInfo<{ n: number }, 'bigint'>
declare const visit: Visit<{ n: number }, 'bigint', { n: number }>
declare const foreign: Session<{ n: number }, 'string'>
const store = new MemoryStore()
const sessions = new SessionManager({ store, initial: () => ({ cart: ['a'], n: 0, nested: { on: true } }) })
const texts = new SessionManager({ store, userIds: 'string' })
const numbers = new SessionManager({ store, userIds: 'number' })
type MySession = SessionOf<typeof sessions>
declare const session: MySession

export async function refused() {
  // A key is public and finds nothing: as an ID it is a mistake.
  // @ts-expect-error TS2345
  await sessions.get(key)
  // @ts-expect-error TS2345
  await sessions.destroy(key)
  // @ts-expect-error TS2345
  await sessions.destroy(info.key)
  // @ts-expect-error TS2345
  await sessions.get(info)
  // A Cookie header is no ID: the lookup would never find anything.
  // @ts-expect-error TS2345 made by sessionId(text)
  await sessions.get(request.headers.cookie)
  // @ts-expect-error TS2345 made by sessionId(text)
  await sessions.get('hello')
  // @ts-expect-error TS2345
  await sessions.regenerate(request.headers.cookie)
  // An ID is secret: as a key it would be logged.
  // @ts-expect-error TS2322
  const wrongKey: SessionKey = session.secret
  // There is no session.id: habit logs it.
  // @ts-expect-error TS2339
  session.id
  // @ts-expect-error TS2339
  info.secret

  // A login has its own verb, and a visit has no other names for it.
  // @ts-expect-error TS2353
  await visit.regenerate({ user: { id: 1, name: 'ada' } })
  // @ts-expect-error TS2339
  visit.destroy

  // Data is written by update alone, at every depth.
  // @ts-expect-error TS2540
  session.data.n = 1
  // @ts-expect-error TS2339
  session.data.cart.push('b')
  // @ts-expect-error TS2540
  session.data.nested.on = false
  // @ts-expect-error TS2540
  session.user = null
  // @ts-expect-error TS2322
  await sessions.update(session, { n: 'one' })
  // @ts-expect-error TS2353
  await sessions.update(session, { unknown: 1 })
  // The function may be run again, so it must not wait.
  // @ts-expect-error TS2345 make the function synchronous: it may run again after a conflict
  await sessions.update(session, async draft => void draft.n++)
  // The habit of React: what is returned would be lost.
  // @ts-expect-error TS2345 edit the draft and return nothing
  await sessions.update(session, draft => ({ ...draft, n: draft.n + 1 }))
  // @ts-expect-error TS2345
  await sessions.update(session, draft => ({ n: draft.n + 1 }))
  // @ts-expect-error TS2345
  await visit.update(draft => ({ ...draft }))
  // @ts-expect-error TS2345
  await sessions.take(session, 'unknown')
  // @ts-expect-error TS2769 'unknown' does not exist
  await sessions.create({ data: { unknown: 1 } })

  // User IDs of another kind.
  // @ts-expect-error TS2769 Type 'string' is not assignable to type 'number | bigint'
  await sessions.create({ user: { id: '42', name: 'ada' } })
  // @ts-expect-error TS2769 Type 'number' is not assignable to type 'string'
  await texts.create({ user: { id: 42, name: 'ada' } })
  // @ts-expect-error TS2769 Type 'bigint' is not assignable to type 'number'
  await numbers.create({ user: { id: 42n, name: 'ada' } })
  // @ts-expect-error TS2345
  await texts.invalidateUser(42)
  // @ts-expect-error TS2345
  await sessions.list('42')
  // @ts-expect-error TS2345
  await texts.updateUserSessions(42, { role: 'admin' })
  // @ts-expect-error TS2322
  await sessions.invalidateAll({ except: 42n })
  // Both fields or none.
  // @ts-expect-error TS2769 Property 'name' is missing
  await sessions.create({ user: { id: 42 } })
  // @ts-expect-error TS2345
  await sessions.get(foreign)
  // A session may be anonymous: its user has to be looked at first.
  // @ts-expect-error TS18047
  session.user.name
  // The lookup may have found nothing.
  // @ts-expect-error TS2531
  ;(await sessions.get(session)).data

  return wrongKey
}

export function refusedOptions() {
  // @ts-expect-error TS2554
  new SessionManager()
  // @ts-expect-error TS2345
  new SessionManager({})
  // Durations have a unit.
  // @ts-expect-error TS2322
  new SessionManager({ store, idleTimeout: 1800 })
  // @ts-expect-error TS2322
  new SessionManager({ store, idleTimeout: '30' })
  // @ts-expect-error TS2322
  new SessionManager({ store, absoluteTimeout: '12 hours' })
  // @ts-expect-error TS2322
  new SessionManager({ store, userIds: 'uuid' })
  // @ts-expect-error TS2353
  new SessionManager({ store, ttl: '30m' })
  // @ts-expect-error TS2322
  new SessionManager({ store, limit: { max: 1, onLimit: 'throw' } })
  // Data with a required key needs a first value.
  // @ts-expect-error TS2345
  new SessionManager<{ n: number }>({ store })
  // @ts-expect-error TS2740
  new SessionManager({ store: new Map() })
  // @ts-expect-error TS2741
  new SessionManager({ store, schema: zod })
  // @ts-expect-error TS2820
  new SessionCookie({ sameSite: 'Lax' })
  // @ts-expect-error TS2353
  new SessionCookie({ httpOnly: false })
  // @ts-expect-error TS2353
  nodeVisits(sessions, { trustProxy: true })
  // exactOptionalPropertyTypes: an option is there or it is not.
  // @ts-expect-error TS2379
  new SessionManager({ store, idleTimeout: undefined })
}

/** A store that forgets a verb is no store. */
// @ts-expect-error TS2420
export class HalfAStore implements Store {
  async delete() {
    return true
  }
}
