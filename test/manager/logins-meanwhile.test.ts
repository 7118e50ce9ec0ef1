// A login of the same user at the moment in which all of the user's sessions are being ended, in one process.

import { SessionManager, type Store } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'

const ada = { id: 42n, name: 'ada' }

function withStore() {
  const barrier = BarrierStore.over(new MemoryStore())
  const sessions = new SessionManager({ store: barrier as Store, sweepInterval: false })
  const visit = (cookie: string | null = null) =>
    openVisit(sessions, { method: 'POST', secure: true, header: () => null, cookie })
  return { barrier, sessions, visit }
}

it.each(['invalidateUser', 'invalidateUser, except', 'invalidateAll'] as const)(
  '%s: a login whose cookie is held back leaves no session that no browser has',
  async verb => {
    const { barrier, sessions, visit } = withStore()
    const asking = await sessions.create({ user: ada })
    const login = visit()
    // The store has ended all, and has not answered yet.
    barrier.next('deleteUser', async proceed => {
      const count = await proceed()
      await login.logIn({ user: ada })
      return count
    })
    const except = verb === 'invalidateUser, except' ? { except: asking } : {}
    await (verb === 'invalidateAll' ? sessions.invalidateAll() : sessions.invalidateUser(ada.id, except))
    const held = login.cookies.find(({ name }) => name === 'session_id')
    const spared = verb === 'invalidateUser, except' ? [asking.key] : []
    expect((await sessions.list(ada.id)).map(({ key }) => key)).toEqual(spared)
    expect(held).toBeUndefined()
  },
)

it('a login after the answer is none of what was ended: it lives, and its cookie is sent', async () => {
  const { barrier, sessions, visit } = withStore()
  await sessions.create({ user: ada })
  await sessions.invalidateUser(ada.id)
  const login = visit()
  const session = await login.logIn({ user: ada })
  expect((await sessions.list(ada.id)).map(({ key }) => key)).toEqual([session.key])
  expect(login.cookies.map(({ name }) => name)).toEqual(['session_id'])
  expect(barrier.calls.filter(({ verb }) => verb === 'deleteUser')).toHaveLength(1)
})

it('a login of another user, or one that the store refuses, makes no second call', async () => {
  const { barrier, sessions } = withStore()
  barrier.next('deleteUser', async proceed => {
    const count = await proceed()
    await sessions.create({ user: { id: 43n, name: 'max' } })
    await expect(sessions.create({ user: { ...ada, passwordVersion: 1 } })).rejects.toMatchObject({
      code: 'ERR_SESSION_STALE_LOGIN',
    })
    return count
  })
  await sessions.invalidateUser(ada.id, { minPasswordVersion: 2 })
  expect(barrier.calls.filter(({ verb }) => verb === 'deleteUser')).toHaveLength(1)
  expect(await sessions.list(43n)).toHaveLength(1)
})

it('a session that began meanwhile, and was ended too, is counted', async () => {
  const { barrier, sessions } = withStore()
  await sessions.create({ user: ada })
  barrier.next('deleteUser', async proceed => {
    const count = await proceed()
    await sessions.create({ user: ada })
    return count
  })
  expect(await sessions.invalidateUser(ada.id)).toBe(2)
})
