// A login of the same user at the moment in which all of the user's sessions are being ended, in one process.

import { expect, it } from 'vitest'
import { open, setUp, user } from '../support/manager-kit.ts'

it.each(['invalidateUser', 'invalidateAll'] as const)(
  '%s: a login that the store heard of later lives, and its cookie is sent',
  async method => {
    const { store, sessions } = setUp()
    await sessions.create({ user })
    const login = open(sessions)
    // The store has ended all, and has not answered yet.
    store.next('deleteUser', async proceed => {
      const count = await proceed()
      await login.logIn({ user })
      return count
    })
    await (method === 'invalidateAll' ? sessions.invalidateAll() : sessions.invalidateUser(1))
    expect((await sessions.list(1)).map(({ key }) => key)).toEqual([(await login.get())?.key])
    expect(login.cookies.map(({ name }) => name)).toEqual(['session_id'])
  },
)

it('a login after the answer is none of what was ended: it lives, and its cookie is sent', async () => {
  const { store, sessions } = setUp()
  await sessions.create({ user })
  await sessions.invalidateUser(1)
  const login = open(sessions)
  const session = await login.logIn({ user })
  expect((await sessions.list(1)).map(({ key }) => key)).toEqual([session.key])
  expect(login.cookies.map(({ name }) => name)).toEqual(['session_id'])
  expect(store.calls.filter(({ verb }) => verb === 'deleteUser')).toHaveLength(1)
})
