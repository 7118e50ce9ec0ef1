// A new ID for the same session, asked for by several requests that bring the old one.

import { describe, expect, it } from 'vitest'
import { grace, setUp, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

it('an old ID within its grace gets the same new cookie, by the ID and by the session that was found with it', async () => {
  const { sessions, store } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, grace))!
  const found = (await sessions.get(old.secret))!
  store.reset()
  const byId = (await sessions.regenerate(old.secret, grace))!
  expect(byId.secret).toBe(next.secret)
  // What leads there, and what it leads to.
  expect(store.counts()).toEqual({ read: 2 })
  store.reset()
  const bySession = (await sessions.regenerate(found, grace))!
  expect(bySession.secret).toBe(next.secret)
  // Not shown as it was, but as it is.
  expect(store.counts()).toEqual({ read: 1 })
})

it('an old ID within its grace shows what was written since, and nothing once the session is gone', async () => {
  const { sessions } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, grace))!
  const found = (await sessions.get(old.secret))!
  await sessions.update(next, { n: 1 })
  expect((await sessions.regenerate(found, grace))?.data).toEqual({ n: 1 })
  await sessions.destroy(next)
  expect(await sessions.regenerate(found, grace)).toBeNull()
})

it('a rotation that another process came before answers the other’s new ID, and its cookie is due', async () => {
  const { sessions, store, manager } = setUp()
  const old = await sessions.create({ user })
  const pause = store.pause('replace', 'before')
  const rotating = sessions.regenerate(old, grace)
  await pause.reached
  const next = (await manager().regenerate(old, grace))!
  pause.resume()
  const found = (await rotating)!
  expect(found.secret).toBe(next.secret)
  expect(await sessions.list(1)).toHaveLength(1)
})

it('regenerate gives a new ID of its own to a session that an old ID leads to', async () => {
  const { sessions } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, grace))!
  const last = (await sessions.regenerate(old.secret))!
  expect([old.secret, next.secret]).not.toContain(last.secret)
  expect(await sessions.get(next.secret)).toBeNull()
  expect((await sessions.list(1)).map(({ key }) => key)).toEqual([last.key])
})

it('regenerate that another process came before with a rotation gives a new ID all the same', async () => {
  const { sessions, store, manager } = setUp()
  const old = await sessions.create({ user })
  const pause = store.pause('replace', 'before')
  const regenerating = sessions.regenerate(old)
  await pause.reached
  const next = (await manager().regenerate(old, grace))!
  pause.resume()
  const last = (await regenerating)!
  expect([old.secret, next.secret]).not.toContain(last.secret)
  expect(await sessions.get(next.secret)).toBeNull()
  expect((await sessions.get(last.secret))?.key).toBe(last.key)
})

it('a new ID is a visit: the session lives on from then, in all no longer than it may', async () => {
  for (const verb of ['rotate', 'regenerate'] as const) {
    const { sessions, clock } = setUp({ idleTimeout: '30m', absoluteTimeout: '1h' })
    const old = await sessions.create({ user })
    clock.advance(20 * MINUTE)
    const renew = (secret: typeof old.secret) =>
      verb === 'rotate' ? sessions.regenerate(secret, grace) : sessions.regenerate(secret)
    const next = (await renew(old.secret))!
    expect([next.seenAt, next.expiresAt - next.createdAt]).toEqual([clock(), 50 * MINUTE])
    clock.advance(29 * MINUTE)
    const last = (await renew(next.secret))!
    expect([last.createdAt, last.expiresAt - last.createdAt]).toEqual([old.createdAt, 60 * MINUTE])
  }
})

it('an ID that leads nowhere gets no new one, and nothing is written', async () => {
  const { sessions, store } = setUp()
  const gone = await sessions.create({ user })
  await sessions.destroy(gone)
  store.reset()
  expect([await sessions.regenerate(gone.secret, grace), await sessions.regenerate(gone.secret)]).toEqual([null, null])
  expect(store.counts()).toEqual({ read: 2 })
})

/** A remembered session, as the one who recalled it holds it: not visited yet. */
async function unvisited() {
  const at = setUp({ rememberFor: '30d', idleTimeout: '30m' })
  const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
  const { session } = (await at.sessions.redeemRememberToken(token))!
  return { ...at, session }
}

it.each(['rotate', 'regenerate'] as const)(
  '%s from a snapshot of a remembered session that was not visited yet sets back no visit since',
  async verb => {
    for (const minutes of [5, 29, 50]) {
      const { sessions, clock, session } = await unvisited()
      for (let minute = 0; minute < minutes; minute += 1) {
        clock.advance(MINUTE)
        await sessions.get(session.secret)
      }
      const next = (await (verb === 'rotate' ? sessions.regenerate(session, grace) : sessions.regenerate(session)))!
      expect([next.seenAt, next.expiresAt]).toEqual([clock(), clock() + 30 * MINUTE])
      expect(await sessions.get(next.secret, { touch: false })).toMatchObject({
        seenAt: next.seenAt,
        expiresAt: next.expiresAt,
      })
    }
  },
)

it('a new ID beside the first visit of a remembered session ends it no earlier than the visit says', async () => {
  for (const verb of ['rotate', 'regenerate'] as const) {
    const { sessions, store, clock, session } = await unvisited()
    clock.advance(29 * MINUTE)
    const pause = store.pause('replace', 'before')
    const renewing = verb === 'rotate' ? sessions.regenerate(session, grace) : sessions.regenerate(session)
    await pause.reached
    const visited = (await sessions.get(session.secret))!
    expect(visited.expiresAt).toBe(clock() + 30 * MINUTE)
    pause.resume()
    const next = (await renewing)!
    expect((await sessions.get(next.secret, { touch: false }))?.expiresAt).toBe(visited.expiresAt)
  }
})

describe('remember with the session of before a new ID', () => {
  const withRemember = () => setUp({ rememberFor: '30d' })

  it('gives a token within the grace of a rotation, which lives and ends with the session', async () => {
    for (const isBeside of [false, true]) {
      const { sessions, store, manager } = withRemember()
      const old = await sessions.create({ user })
      const rotate = async () => (await manager().regenerate(old, grace))!
      const rotated = isBeside ? null : await rotate()
      store.reset()
      const pause = store.pause('create', 'before')
      const asking = sessions.issueRememberToken(old)
      await pause.reached
      const next = rotated ?? (await rotate())
      pause.resume()
      const token = await asking
      expect(store.counts()).toMatchObject({ create: 2, read: 2 })
      expect((await sessions.redeemRememberToken(token))?.session.user.name).toBe('ada')
      await sessions.revoke(1, next.key)
      expect(await sessions.redeemRememberToken(token)).toBeNull()
    }
  })

  it('goes on with a session that gets another new ID while it is looked for', async () => {
    const { sessions, store, manager } = withRemember()
    const old = await sessions.create({ user })
    const next = (await manager().regenerate(old, grace))!
    store.next('create', proceed => proceed())
    store.next('create', async proceed => {
      await manager().regenerate(next, grace)
      return proceed()
    })
    expect(await sessions.redeemRememberToken(await sessions.issueRememberToken(old))).not.toBeNull()
  })

  it('gives none where the session has ended, or got a new ID that the old one does not lead to', async () => {
    for (const end of ['destroy', 'regenerate'] as const) {
      const { sessions } = withRemember()
      const old = await sessions.create({ user })
      await sessions[end](old)
      await expect(sessions.issueRememberToken(old)).rejects.toMatchObject({ code: 'ERR_SESSION_UNAUTHENTICATED' })
      expect(await sessions.list(1)).toHaveLength(end === 'destroy' ? 0 : 1)
    }
  })
})
