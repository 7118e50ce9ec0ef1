import { SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults, type Verb } from '../support/barrier-store.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const user = { id: 42, name: 'ada' }

describe('what a framework sends to a client of an error, its message,', () => {
  const details = ['connect ECONNREFUSED', '10.1.2.3', '5432', 'relation "app_sessions"', 'sessions_user', 'hunter2']
  const failure = () =>
    Object.assign(new Error(`${details.join(' ')} postgres://app:hunter2@db.internal/app`), { host: 'db.internal' })

  it.each<Verb>(['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'])(
    'says nothing of what the database said at %s; the cause does',
    async verb => {
      const store = BarrierStore.over(new MemoryStore())
      const clock = testClock()
      const errors: SessionStoreError[] = []
      const sessions = new SessionManager({
        store,
        now: clock,
        sweepInterval: false,
        onEvent: event => {
          if (event.type === 'store-error') errors.push(event.error)
        },
      })
      const session = await sessions.create({ user })
      for (const how of [() => Promise.reject(failure()), faults.throws, faults.answers({ host: 'db.internal' })]) {
        store.every(verb, how as never)
        const calls = [
          () => sessions.create({ user }),
          () => sessions.get(session.secret),
          () => sessions.update(session, { a: 1 }),
          () => sessions.rotate(session, { grace: '1m' }),
          () => sessions.destroy(session),
          () => sessions.invalidateUser(42, { except: session }),
          () => sessions.list(42),
        ]
        clock.advance(5 * MINUTE)
        for (const call of calls) await call().catch(() => {})
      }
      store.every(verb, null)
      for (const error of errors) {
        expect(error).toBeInstanceOf(SessionStoreError)
        expect(error.message).toMatch(
          new RegExp(`^${verb}: (the store failed|the store answered nonsense \\((object|string)\\))$`),
        )
      }
      expect(errors.some(error => String((error.cause as Error)?.message).includes(details[0]!))).toBe(true)
    },
  )
})
