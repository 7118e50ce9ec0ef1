// A session with a shorter life than the others of its manager: a shared computer, an administrator, a kiosk.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { grace, open, setUp, user } from '../support/manager-kit.ts'
import { HOUR, MINUTE } from '../support/test-clock.ts'

it('a get tells each caller that holds a session that it has expired, and only then', async () => {
  const { sessions, clock, events } = setUp()
  const [theirs, visitor, ended] = [await sessions.create({ user }), await sessions.create(), await sessions.create()]
  await sessions.destroy(ended)
  events.length = 0
  clock.advance(30 * MINUTE - 1)
  expect(await sessions.get(ended)).toBeNull()
  expect(await sessions.get(theirs, { touch: false })).not.toBeNull()
  expect(events).toEqual([])
  clock.advance(1)
  for (const each of [theirs, visitor, theirs.secret, null, undefined])
    expect(await sessions.get(each as never)).toBeNull()
  expect(events).toEqual([
    { type: 'expired', key: theirs.key, userId: 1n },
    { type: 'expired', key: visitor.key, userId: null },
  ])
})

describe('a login with an idle time of its own', () => {
  it('keeps it over writes, a flash message, new IDs and a restart', async () => {
    const { clock, sessions, manager } = setUp()
    let session = await sessions.logIn(null, { user, idleTimeout: '10m' })
    const steps = [
      async () => {
        await sessions.update(session, { a: 1 })
        return sessions.get(session)
      },
      () => sessions.regenerate(session),
      () => sessions.regenerate(session, grace),
      async () => {
        await sessions.take(session, 'a')
        return sessions.get(session)
      },
      () => manager().get(session.secret),
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

it('a login may ask for all that the manager allows, and for two touches at least', async () => {
  const { sessions, clock } = setUp()
  for (const [idleTimeout, absoluteTimeout] of [
    ['30m', '12h'],
    ['6m', '1ms'],
  ] as const) {
    const session = await sessions.create({ user, idleTimeout, absoluteTimeout })
    expect(session.absoluteExpiresAt - clock()).toBe(absoluteTimeout === '12h' ? 12 * HOUR : 1)
  }
})

it.each([
  [
    { idleTimeout: '1800001ms' },
    'idleTimeout: expected at most the manager\'s idleTimeout (1800000 ms), got "1800001ms"',
  ],
  [
    { idleTimeout: '359999ms' },
    'idleTimeout: expected at least twice the touchInterval (180000 ms), else a session in use',
  ],
  [
    { absoluteTimeout: '43200001ms' },
    "absoluteTimeout: expected at most the manager's absoluteTimeout (43200000 ms), got",
  ],
  [{ idleTimeout: 600 }, 'idleTimeout: expected a duration with its unit'],
  [{ absoluteTimeout: '-1h' }, 'absoluteTimeout: expected a duration with its unit'],
])('a login with %j is refused, and nothing is stored', async (lifetime, message) => {
  const { sessions, store } = setUp()
  const login = { user, ...lifetime } as never
  for (const begin of [
    () => sessions.create(login),
    () => sessions.logIn(null, login),
    () => open(sessions).logIn(login),
  ]) {
    await expect(begin()).rejects.toThrow(TypeError)
    await expect(begin()).rejects.toThrow(message)
  }
  expect(store.calls).toEqual([])
})

it.each(['verifiedAt', 'idleTimeout', 'absoluteTimeout'])('an anonymous session has no %s of its own', async name => {
  await expect(setUp().sessions.create({ [name]: '10m' } as never)).rejects.toThrow(
    `create: "${name}" is not an option; it belongs to a login: { user, … } (there are: data)`,
  )
})
