// A remember-me series with sessions that began with its tokens in several processes, and the ways in which it ends.

import { SessionManager, type Store } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { BarrierStore, type Handler } from '../support/barrier-store.ts'
import { DAY, times, user } from '../support/remembered.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

export const thefts = (events: readonly any[]) => events.filter(({ type }) => type === 'remember-theft')

export type Node = SessionManager<Record<string, unknown>>

/** A device that asked for a token in one process, and began sessions with its tokens in others. */
export async function setUpSeries(options: object = {}) {
  const store = new MemoryStore()
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
  const begun = (await node().redeemRememberToken(first.token!))!
  /** What stands in the store of the series and of what began with it. */
  const left = async () => {
    const call = { now: clock() }
    const all = [await store.listUser('1', 'session', call), await store.listUser('1', 'remember', call)].flat()
    return all.filter(({ kind, parent }) => kind === 'remember' || parent !== null)
  }
  return { store, clock, events, node, failing, asked, token, first, begun, left }
}
export type At = Awaited<ReturnType<typeof setUpSeries>>

interface Way {
  readonly options?: object
  readonly before?: (at: At) => Promise<unknown>
  readonly end: (sessions: Node, at: At) => Promise<unknown>
}

/** From now on the spent token is a stolen one. */
export async function visit(at: At): Promise<void> {
  await at.node().get(at.begun.session.secret)
  at.clock.advance(MINUTE + CLOCK_TOLERANCE + 1)
}

export const WAYS: Record<string, Way> = {
  forget: { end: (sessions, at) => sessions.revokeRememberToken(at.begun.token!) },
  'forget with an old token': { end: (sessions, at) => sessions.revokeRememberToken(at.token) },
  logout: { end: (sessions, at) => sessions.destroy(at.begun.session.secret) },
  'a login in place of a session that began with it, in a browser that has the token': {
    async end(sessions, at) {
      await sessions.logIn(at.begun.session.secret, { user })
      await sessions.revokeRememberToken(at.begun.token!)
    },
  },
  'the second use of a stolen token': {
    before: visit,
    end: (sessions, at) => sessions.redeemRememberToken(at.first.token!),
  },
  'the second use of a stolen token, which ends all of the user': {
    options: { onTheft: 'invalidate-user' },
    before: visit,
    end: (sessions, at) => sessions.redeemRememberToken(at.first.token!),
  },
  'revoking the session that asked for the token': { end: (sessions, at) => sessions.revoke(1, at.asked.key) },
  'revoking a session that began with it': { end: (sessions, at) => sessions.revoke(1, at.begun.session.key) },
}
