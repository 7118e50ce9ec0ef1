// A store that fails is no logout: the request is a 503, and the cookies stay as they are.
import { SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { ada, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const setUp = () => {
  const store = BarrierStore.over(new MemoryStore())
  return { store, made: makeSessions({ store, rememberFor: '30d' }) }
}

describe('an outage is not a logout', () => {
  it('touches no cookie, asks once, and answers 503', async () => {
    const { store, made } = setUp()
    const { cookie, token } = await loggedIn(made, { ...ada, remember: true })
    for (const verb of ['read', 'delete', 'create', 'replace'] as const) store.every(verb, faults.rejects)
    const visit = visitOf(made.sessions, [cookie, token])
    await expect(visit.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', status: 503 })
    await expect(visit.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect(made.calls).toEqual(['read'])
    for (const write of [visit.logOut(), visit.create(), visit.logIn(ada)])
      await expect(write).rejects.toMatchObject({ status: 503 })
    expect([setCookies(visit), visit.headers.get('cache-control')]).toEqual([[], 'no-store'])
  })

  it.each([undefined, { grace: '1m' }] as const)(
    'is over for a new ID, though the read before it failed: %j',
    async options => {
      const { store, made } = setUp()
      const { cookie, session } = await loggedIn(made)
      const visit = visitOf(made.sessions, cookie)
      store.next('read', faults.rejects)
      await expect(visit.get()).rejects.toMatchObject({ status: 503 })
      const renewed = await visit.regenerate(options)
      expect([renewed?.user?.name, renewed?.secret === session.secret]).toEqual(['ada', false])
    },
  )
})

describe.each(['logIn', 'logOut'] as const)('the error of a %s that fails', verb => {
  const attempt = (visit: ReturnType<typeof visitOf>) => (verb === 'logIn' ? visit.logIn(ada) : visit.logOut())
  const refuse = () => Promise.reject(new SessionStoreError('read', 'not-applied', 'refused'))

  it('says unknown where the step that failed came after a write', async () => {
    const { store, made } = setUp()
    const { session, cookie, token } = await loggedIn(made, { ...ada, remember: true })
    let hasWritten = false
    const isRefused = {
      replace: () => false,
      read: () => verb === 'logIn',
      delete: (key: string) => key === session.key,
    }
    for (const name of ['replace', 'read', 'delete'] as const)
      store.every(name, (proceed, [key]) => {
        if (hasWritten && isRefused[name](key)) return refuse()
        hasWritten ||= name !== 'read'
        return proceed()
      })
    await expect(attempt(visitOf(made.sessions, [cookie, token]))).rejects.toMatchObject({
      outcome: 'unknown',
      cause: { outcome: 'not-applied' },
    })
  })

  it('says that nothing was written where its first step was refused', async () => {
    const { store, made } = setUp()
    const { cookie } = await loggedIn(made)
    for (const name of ['replace', 'delete'] as const) store.every(name, refuse)
    await expect(attempt(visitOf(made.sessions, cookie))).rejects.toMatchObject({ outcome: 'not-applied' })
  })
})
