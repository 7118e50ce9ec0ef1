// A session with a shorter life than the others of its manager: a shared computer, an administrator, a kiosk.

import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { onlyHost } from '../support/only-host.ts'
import { HOUR, MINUTE, SECOND, testClock } from '../support/test-clock.ts'

const user = { id: 42, name: 'ada' }
function setUp(options: object = {}) {
  const clock = testClock()
  const store = new MemoryStore()
  return { clock, store, sessions: new SessionManager({ store, now: clock, sweepInterval: false, ...options }) }
}

describe('a login with idle', () => {
  it('ends after that long without a request, not before', async () => {
    const { clock, sessions } = setUp()
    const { secret } = await sessions.create({ user, idleTimeout: '10m' })
    for (let visit = 0; visit < 20; visit += 1) {
      clock.advance(10 * MINUTE - 1)
      expect(await sessions.get(secret)).not.toBeNull()
    }
    clock.advance(10 * MINUTE)
    expect(await sessions.get(secret)).toBeNull()
  })

  it('keeps it over writes, a flash message, a new ID, a rotation and a restart', async () => {
    const { clock, sessions, store } = setUp()
    let session = await sessions.logIn(null, { user, idleTimeout: '10m' })
    const steps = [
      async () => {
        await sessions.update(session, { a: 1 })
        return sessions.get(session)
      },
      () => sessions.regenerate(session),
      () => sessions.regenerate(session, { grace: '1m' }),
      async () => {
        await sessions.take(session, 'a')
        return sessions.get(session)
      },
      () => new SessionManager({ store, now: clock, sweepInterval: false }).get(session.secret),
    ]
    for (const step of steps) {
      clock.advance(9 * MINUTE)
      session = (await step()) as typeof session
      expect(session.expiresAt - clock()).toBe(10 * MINUTE)
    }
    clock.advance(10 * MINUTE)
    expect(await sessions.get(session.secret)).toBeNull()
  })

  it('is over with the session: the next login in its place has the usual time', async () => {
    const { clock, sessions } = setUp()
    const short = await sessions.create({ user, idleTimeout: '10m', absoluteTimeout: '1h' })
    const next = await sessions.logIn(short, { user })
    expect([next.expiresAt - clock(), next.absoluteExpiresAt - clock()]).toEqual([30 * MINUTE, 12 * HOUR])
  })

  it('never lives longer than a manager allows that was made stricter since', async () => {
    const { clock, sessions, store } = setUp()
    const { secret } = await sessions.create({ user, idleTimeout: '20m' })
    const strict = new SessionManager({ store, now: clock, sweepInterval: false, idleTimeout: '5m' })
    clock.advance(4 * MINUTE)
    expect((await strict.get(secret))!.expiresAt - clock()).toBe(5 * MINUTE)
    clock.advance(5 * MINUTE)
    expect(await strict.get(secret)).toBeNull()
  })

  it('has a cookie that lives as long', async () => {
    const { sessions } = setUp()
    const visit = openVisit(sessions, { method: 'POST', cookie: null, secure: true, header: onlyHost })
    await visit.logIn({ user, idleTimeout: '10m' })
    expect(visit.finish().headers.getSetCookie()[0]).toContain('Max-Age=600;')
  })
})

describe('a login with absolute', () => {
  it('ends then, however busy it is', async () => {
    const { clock, sessions } = setUp()
    const { secret, absoluteExpiresAt } = await sessions.create({ user, absoluteTimeout: '1h' })
    expect(absoluteExpiresAt).toBe(clock() + HOUR)
    for (let minute = 0; minute < 59; minute += 1) {
      clock.advance(MINUTE)
      expect(await sessions.get(secret)).not.toBeNull()
    }
    clock.advance(MINUTE)
    expect(await sessions.get(secret)).toBeNull()
  })

  it('may be shorter than the idle time', async () => {
    const { clock, sessions } = setUp()
    const { secret, expiresAt } = await sessions.create({ user, absoluteTimeout: '90s' })
    expect(expiresAt).toBe(clock() + 90 * SECOND)
    clock.advance(90 * SECOND)
    expect(await sessions.get(secret)).toBeNull()
  })
})

it('lives for at most idle after its last visit, and at most absolute in all, whatever the visits', async () => {
  const minutes = (max: number) => fc.integer({ min: 6, max })
  await fc.assert(
    fc.asyncProperty(
      minutes(30),
      minutes(720),
      fc.array(fc.integer({ min: 1, max: 40 })),
      async (idle, absolute, gaps) => {
        const { clock, sessions } = setUp({ touchInterval: '1ms' })
        const { secret } = await sessions.create({ user, idleTimeout: `${idle}m`, absoluteTimeout: `${absolute}m` })
        let age = 0
        let isLive = true
        for (const gap of gaps) {
          clock.advance(gap * MINUTE)
          age += gap
          isLive &&= gap < idle && age < absolute
          expect((await sessions.get(secret)) !== null).toBe(isLive)
        }
      },
    ),
  )
})

describe('what cannot be', () => {
  it.each([
    [{ idleTimeout: '31m' }, 'idleTimeout: expected at most the manager\'s idleTimeout (1800000 ms), got "31m"'],
    [
      { idleTimeout: '5m' },
      'idleTimeout: expected at least twice the touchInterval (180000 ms), else a session in use would expire',
    ],
    [
      { absoluteTimeout: '13h' },
      'absoluteTimeout: expected at most the manager\'s absoluteTimeout (43200000 ms), got "13h"',
    ],
    [{ idleTimeout: 600 }, 'idleTimeout: expected a duration with its unit'],
    [{ absoluteTimeout: '-1h' }, 'absoluteTimeout: expected a duration with its unit'],
  ])('%j is refused, and nothing is stored', async (lifetime, message) => {
    const { sessions } = setUp()
    for (const begin of [
      () => sessions.create({ user, ...lifetime } as never),
      () => sessions.logIn(null, { user, ...lifetime } as never),
      () =>
        openVisit(sessions, { method: 'POST', cookie: null, secure: true, header: onlyHost }).logIn({
          user,
          ...lifetime,
        } as never),
    ]) {
      await expect(begin()).rejects.toThrow(TypeError)
      await expect(begin()).rejects.toThrow(message)
    }
    expect(await sessions.list(42)).toEqual([])
  })

  it('is a lifetime of an anonymous session', async () => {
    for (const name of ['idleTimeout', 'absoluteTimeout'])
      await expect(setUp().sessions.create({ [name]: '10m' } as never)).rejects.toThrow(
        `create: "${name}" is not an option; it belongs to a login: { user, … } (there are: data)`,
      )
  })
})
