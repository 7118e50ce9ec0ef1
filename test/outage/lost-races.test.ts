// What a caller holds may end between the look and the write.
import { SessionStoreError } from 'coatcheck'
import { expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { other, setUp, user } from '../support/manager-kit.ts'

it.each(['the session', 'its ID'])(
  'a login over %s that a remember token began, and that got a new ID a moment ago, ends the token',
  async given => {
    const { sessions } = setUp({ rememberFor: '30d' })
    const { session, token } = (await sessions.redeemRememberToken(
      await sessions.issueRememberToken(await sessions.create({ user })),
    ))!
    const next = await sessions.regenerate(session)
    const login = await sessions.logIn(given === 'its ID' ? session.secret : session, { user: other })
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    expect(await sessions.get(next)).toBeNull()
    expect((await sessions.get(login))?.user).toEqual({ id: 2n, name: 'max' })
  },
)

it('a session that ends as its use is written down is a failure, if the store cannot say what became of it', async () => {
  const { sessions, store, clock } = setUp()
  const session = await sessions.create({ user })
  clock.advance(600_000)
  store.next('touch', async (proceed, [key, , , call]) => {
    await store.inner.delete(key, call)
    store.every('read', faults.rejects)
    return proceed()
  })
  await expect(sessions.get(session.secret)).rejects.toThrow(SessionStoreError)
})
