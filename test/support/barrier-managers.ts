import { SessionManager, type Store } from 'coatcheck'
import { BarrierStore } from './barrier-store.ts'
import { testClock } from './test-clock.ts'

/** Managers over one store whose calls a test can stop, on a clock that the test sets, with all that they tell. */
export function barrierManagers(inner: Store, options: object = {}) {
  const store = BarrierStore.over(inner)
  const clock = testClock()
  const events: any[] = []
  const manager = (more: object = {}): SessionManager =>
    new SessionManager({
      store,
      now: clock,
      sweepInterval: false,
      onEvent: event => events.push(event),
      ...options,
      ...more,
    })
  return { store, clock, events, manager, sessions: manager() }
}
