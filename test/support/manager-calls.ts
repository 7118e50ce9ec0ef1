// What a manager is asked about one user's session: where each of these must fail, or must not show what it was given.
import type { Duration, SessionManager, UserSession } from 'coatcheck'
import type { Verb } from './barrier-store.ts'

interface Held {
  readonly session: UserSession<any, any>
  readonly token?: string
  /** What a login is given; the session's own user unless told. */
  readonly login?: { readonly user: object; readonly data?: object }
  readonly change?: object
  /** Of an end of all sessions of the user. */
  readonly everywhere?: object
}
type Run = (sessions: SessionManager<any, any, any>, held: Required<Held>) => Promise<unknown>

/** Each with the call of the store that decides it. */
const CALLS = {
  create: ['create', (at, { login }) => at.create(login as never)],
  'anonymous create': ['create', (at, { login: { data } }) => at.create({ data } as never)],
  get: ['read', (at, { session }) => at.get(session.secret)],
  update: ['update', (at, { session, change }) => at.update(session, change)],
  take: ['update', (at, { session }) => at.take(session, 'flash')],
  regenerate: ['replace', (at, { session }) => at.regenerate(session)],
  rotate: ['replace', (at, { session }) => at.regenerate(session, { grace: '1m' as Duration })],
  login: ['replace', (at, { session, login }) => at.logIn(session, login as never)],
  list: ['listUser', (at, { session }) => at.list(session.user.id)],
  revoke: ['read', (at, { session }) => at.revoke(session.user.id, session.key)],
  remember: ['create', (at, { session }) => at.issueRememberToken(session)],
  recall: ['read', (at, { token }) => at.redeemRememberToken(token)],
  forget: ['delete', (at, { token }) => at.revokeRememberToken(token)],
  destroy: ['delete', (at, { session }) => at.destroy(session)],
  invalidateUser: ['deleteUser', (at, { session, everywhere }) => at.invalidateUser(session.user.id, everywhere)],
} satisfies Record<string, readonly [Verb, Run]>

const NO_TOKEN = `${'s'.repeat(43)}.${'v'.repeat(43)}`

/** The calls of a manager, or those of these names: a name, the call of the store that decides it, and how it is made. */
export const managerCalls = (
  names: RegExp = /./,
): [name: string, verb: Verb, run: (sessions: SessionManager<any, any, any>, held: Held) => Promise<unknown>][] =>
  Object.entries(CALLS as Record<string, readonly [Verb, Run]>)
    .filter(([name]) => names.test(name))
    .map(([name, [verb, run]]) => [
      name,
      verb,
      (sessions, held) =>
        run(sessions, {
          token: NO_TOKEN,
          login: { user: held.session.user },
          change: { n: 1 },
          everywhere: {},
          ...held,
        }),
    ])
