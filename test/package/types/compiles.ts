// What users write and TypeScript has to accept, without a single type argument. Checked by types.test.ts; never run.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import {
  type Change,
  type Login,
  type Redeemed,
  type Session,
  type SessionEvent,
  type SessionInfo,
  SessionManager,
  type SessionOf,
  type SessionOptions,
  type SessionRef,
  type Store,
  sessionId,
  type User,
  type UserId,
  type UserIdInput,
  type UserSession,
  type Visit,
  type VisitOf,
} from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { openVisit, SessionCookie } from 'coatcheck/custom-server'
import { testStore } from 'coatcheck/custom-store/testing'
import { deviceBound } from 'coatcheck/device-bound'
import { type FetchVisit, type FetchVisits, fetchVisits } from 'coatcheck/fetch'
import { type NodeVisitsOptions, nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import expressSession, { type Store as ExpressStore } from 'express-session'
import { it } from 'vitest'
import * as zod from 'zod'

/** Compiles only where both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_: Same<A, B>) => {}

declare const request: IncomingMessage
declare const response: ServerResponse
const store = new MemoryStore()

export async function theShortestProgram() {
  const sessions = new SessionManager({ store })
  const session = await sessions.create({ user: { id: 42, name: 'ada' } })
  same<bigint, typeof session.user.id>(true)
  same<Session<Record<string, unknown>, 'bigint'> | null, Awaited<ReturnType<typeof sessions.get>>>(true)
  await sessions.get(session.secret)
  await sessions.get(sessionId(new SessionCookie().candidates(request.headers.cookie)[0]))
  const jar: { get(name: string): string | undefined } = new Map<string, string>()
  await sessions.get(sessionId(jar.get('session_id')))
  await sessions.destroy(undefined)
  same<number, Awaited<ReturnType<typeof sessions.count>>>(true)
  for await (const { user, namespace, key } of sessions.all({ pageSize: 10, signal: AbortSignal.timeout(1000) })) {
    same<string | null, typeof namespace>(true)
    if (user) await sessions.revoke(user.id, key)
  }
}

export async function userIdsOfEachKind() {
  const numbers = new SessionManager({ store, userIds: 'number' })
  const texts = new SessionManager({ store, userIds: 'string' })
  const one = await numbers.create({ user: { id: 1, name: 'ada' } })
  const two = await texts.create({ user: { id: '0190b2c4', name: 'ada', passwordVersion: null } })
  same<number, typeof one.user.id>(true)
  same<string, typeof two.user.id>(true)
}

export async function dataTypedByInitial() {
  const sessions = new SessionManager({
    store,
    initial: () => ({ cart: [] as { sku: string; n: number }[], theme: 'dark' }),
  })
  type MySession = SessionOf<typeof sessions>
  const session: MySession = await sessions.create()
  same<string, typeof session.data.theme>(true)
  const skus: readonly string[] = session.data.cart.map(item => item.sku)
  await sessions.update(session, { theme: 'light' })
  await sessions.update(session, draft => {
    draft.cart.push({ sku: 'a', n: skus.length })
  })
  await sessions.update(session, draft => draft.cart.push({ sku: 'b', n: 1 }))
  await sessions.update(session, draft => draft.cart.pop())
  await sessions.update(session, draft => draft.cart.splice(0, 1))
  const theme = await sessions.take(session, 'theme')
  same<string | undefined, typeof theme>(true)
  await sessions.logIn(session, { user: { id: 1, name: 'ada' }, data: before => ({ cart: before.cart }) })
}

export async function dataTypedByZod() {
  const schema = zod.object({ theme: zod.enum(['light', 'dark']).default('light'), visits: zod.number().default(0) })
  const sessions = new SessionManager({ store, schema })
  const session = await sessions.create({ data: { visits: 1 } })
  same<'light' | 'dark', typeof session.data.theme>(true)
  await sessions.update(session, draft => {
    draft.visits += 1
  })
}

/** As frameworks on both protocols have them. */
export async function aRequestOfEitherProtocol(
  either: IncomingMessage | Http2ServerRequest,
  answer: ServerResponse | Http2ServerResponse,
) {
  const sessions = new SessionManager({ store })
  const visits = nodeVisits(sessions)
  if (await deviceBound(visits).handled(either, answer)) return null
  same<IncomingMessage, Parameters<typeof visits.of>[0]>(true)
  return visits.of(either, answer).get()
}

export async function aHandlerOfOneApplication() {
  const sessions = new SessionManager({ store, userIds: 'string', initial: () => ({ theme: 'dark' }) })
  type MyVisit = VisitOf<typeof sessions>
  same<Visit<{ theme: string }, 'string', { theme: string }>, MyVisit>(true)
  same<Session<{ theme: string }, 'string'>, SessionOf<typeof sessions>>(true)
  const login = (visit: MyVisit) => visit.logIn({ user: { id: '0190b2c4', name: 'ada' }, data: { theme: 'light' } })
  await login(nodeVisits(sessions).of(request, response))
  await login(fetchVisits(sessions).of(new Request('https://a.example/')))
  await login(openVisit(sessions.namespace('shop'), { method: 'GET', cookie: null, secure: true, header: () => null }))
  same<never, VisitOf<Store>>(true)
  same<never, SessionOf<Store>>(true)
}

/** Without type arguments they are what `new SessionManager({ store })` gives. */
export async function typesByTheirNamesAlone() {
  const sessions = new SessionManager({ store })
  const login: Login = { user: { id: 42, name: 'ada' }, data: { theme: 'dark' } }
  const session: UserSession = await sessions.create(login)
  const any: Session = session
  const current: SessionRef = any.secret
  const user: User = session.user
  const id: UserId = user.id
  const infos: readonly SessionInfo[] = await sessions.list(id satisfies UserIdInput)
  const options: NodeVisitsOptions = { trustedOrigins: ['https://app.example.com'], isSecure: () => true }
  const visit: Visit = nodeVisits(sessions, options).of(request, response)
  same<VisitOf<typeof sessions>, Visit>(true)
  same<SessionOf<typeof sessions>, Session>(true)
  same<SessionManager, typeof sessions>(true)
  const change: Change = { theme: 'light' }
  await visit.update(change)
  const visits: FetchVisits = fetchVisits(sessions)
  const fetchVisit: FetchVisit = visits.of(new Request('https://a.example/'))
  const recalled: Redeemed | null = await sessions.redeemRememberToken(await sessions.issueRememberToken(session))
  const settings: SessionOptions = { store, onEvent: (event: SessionEvent) => console.log(event.type) }
  return [await sessions.get(current), infos, recalled, fetchVisit, new SessionManager(settings)]
}

export class ThirdPartyStore implements Store {
  readonly #memory: Store = new MemoryStore()
  create = this.#memory.create.bind(this.#memory)
  read = this.#memory.read.bind(this.#memory)
  update = this.#memory.update.bind(this.#memory)
  touch = this.#memory.touch.bind(this.#memory)
  replace = this.#memory.replace.bind(this.#memory)
  delete = this.#memory.delete.bind(this.#memory)
  deleteUser = this.#memory.deleteUser.bind(this.#memory)
  listUser = this.#memory.listUser.bind(this.#memory)
}

export const conformance = () => testStore(it, () => new ThirdPartyStore())

export function storesForMiddleware() {
  const sessions = new SessionManager({ store, initial: () => ({ cart: [] as string[] }) })
  const made: ExpressStore = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })
  made.get('an ID', (error, found) => [error, found?.cookie.maxAge])
  expressSession({ store: connectStore(sessions), secret: 'a secret' })
  connectStore(sessions, { oldStore: new expressSession.MemoryStore() })
}
