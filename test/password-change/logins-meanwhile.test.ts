// A login of the same user at the moment in which all of the user's sessions are being ended, in one process.

import { SessionManager, type Store } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { onlyHost } from '../support/only-host.ts'

const ada = { id: 42n, name: 'ada' }

function withStore() {
  const barrier = BarrierStore.over(new MemoryStore())
  const sessions = new SessionManager({ store: barrier as Store, sweepInterval: false })
  const visit = (cookie: string | null = null) =>
    openVisit(sessions, { method: 'POST', secure: true, header: onlyHost, cookie })
  return { barrier, sessions, visit }
}

it.each(['invalidateUser', 'invalidateAll'] as const)(
  '%s: a login that the store heard of later lives, and its cookie is sent',
  async method => {
    const { barrier, sessions, visit } = withStore()
    await sessions.create({ user: ada })
    const login = visit()
    // The store has ended all, and has not answered yet.
    barrier.next('deleteUser', async proceed => {
      const count = await proceed()
      await login.logIn({ user: ada })
      return count
    })
    await (method === 'invalidateAll' ? sessions.invalidateAll() : sessions.invalidateUser(ada.id))
    expect((await sessions.list(ada.id)).map(({ key }) => key)).toEqual([(await login.get())?.key])
    expect(login.cookies.map(({ name }) => name)).toEqual(['session_id'])
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
