// A remember-me series with sessions that began with its tokens in several processes, and the ways in which it ends.
import { SessionManager, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { BarrierStore, type Handler } from '../support/barrier-store.ts'
import { times, user } from '../support/manager-kit.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'
import { DAY, WINDOW } from './devices.ts'

export type Node = SessionManager<Record<string, unknown>>

/** A device that asked for a token in one process, and began sessions with its tokens in others. */
export async function setUpSeries(options: object = {}, store = new MemoryStore()) {
  const clock = testClock()
  const events: any[] = []
  const node = (over: Store = store, more: object = {}): Node =>
    new SessionManager({
      store: over,
      now: clock,
      sweepInterval: false,
      rememberFor: '30d',
      idleTimeout: '20d',
      absoluteTimeout: '30d',
      onEvent: event => events.push(event),
      ...options,
      ...more,
    })
  /** A process in which this call of the store fails, and those after it do not. */
  const failing = (place: number, fault: Handler) => {
    const barrier = BarrierStore.over(store)
    for (const _ of times(place)) barrier.next('any', proceed => proceed())
    barrier.next('any', fault)
    return node(barrier)
  }
  const asked = await node().create({ user })
  const token = await node().issueRememberToken(asked)
  clock.advance(DAY)
  const first = (await node().redeemRememberToken(token))!
  clock.advance(MINUTE)
  const begun = (await node().redeemRememberToken(first.token))!
  /** What stands in the store of the series and of what began with it. */
  const left = async () => {
    const call = { now: clock() }
    const all = [await store.listUser('1', 'session', call), await store.listUser('1', 'remember', call)].flat()
    return all.filter(({ kind, parent }) => kind === 'remember' || parent !== null)
  }
  const thefts = () => events.filter(({ type }) => type === 'remember-theft')
  const ended = () => events.filter(({ type }) => type === 'destroyed')
  return { store, clock, events, node, failing, asked, token, first, begun, left, thefts, ended }
}
export type At = Awaited<ReturnType<typeof setUpSeries>>

export interface Way {
  readonly by: 'logout' | 'login' | 'theft' | 'revoke'
  readonly options?: object
  readonly before?: (at: At) => Promise<unknown>
  readonly end: (sessions: Node, at: At) => Promise<unknown>
  /** Finds the series by what stands in its record. */
  readonly readsSeries?: true
}

/** From now on the spent token is a stolen one. */
export async function visit(at: At): Promise<void> {
  await at.node().get(at.begun.session.secret)
  at.clock.advance(WINDOW + 1)
}
export const steal = (sessions: Node, at: At) => sessions.redeemRememberToken(at.first.token)

export const WAYS: Record<string, Way> = {
  revokeRememberToken: { by: 'logout', end: (sessions, at) => sessions.revokeRememberToken(at.begun.token) },
  'revokeRememberToken with an old token': {
    by: 'logout',
    end: (sessions, at) => sessions.revokeRememberToken(at.token),
  },
  'a logout': { by: 'logout', end: (sessions, at) => sessions.destroy(at.begun.session.secret) },
  'a login in place of a session that began with it, in a browser that has the token': {
    by: 'login',
    async end(sessions, at) {
      await sessions.logIn(at.begun.session.secret, { user })
      await sessions.revokeRememberToken(at.begun.token)
    },
  },
  'the second use of a stolen token': { by: 'theft', before: visit, end: steal },
  'the second use of a stolen token, which ends all of the user': {
    by: 'theft',
    options: { onTheft: 'invalidate-user' },
    before: visit,
    end: steal,
  },
  'revoking the session that asked for the token': {
    by: 'revoke',
    end: (sessions, at) => sessions.revoke(1, at.asked.key),
    readsSeries: true,
  },
  'revoking a session that began with it': {
    by: 'revoke',
    end: (sessions, at) => sessions.revoke(1, at.begun.session.key),
  },
}
/** Those ways that need no theft before. */
export const LEAVING = Object.entries(WAYS).filter(([, { by }]) => by !== 'theft')
