// A store that fails is no logout: the request is a 503, and the cookies stay as they are.
import { SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

/** A store of which some methods fail while `failing.on`. */
function failingStore(...methods: ('read' | 'delete' | 'create' | 'replace')[]) {
  const failing = { on: false }
  const store = new MemoryStore()
  for (const name of methods) {
    const works = store[name].bind(store) as (...args: unknown[]) => unknown
    const method = (...args: unknown[]) =>
      failing.on ? Promise.reject(new Error('connection refused')) : works(...args)
    Object.assign(store, { [name]: method })
  }
  return { store, failing }
}

describe('an outage is not a logout', () => {
  it('touches no cookie, asks once, and answers 503', async () => {
    const { store, failing } = failingStore('read', 'delete', 'create', 'replace')
    const made = makeSessions({ store, rememberFor: '30d' })
    const { cookie, token } = await loggedIn(made, { ...ada, remember: true })
    failing.on = true
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
      const { store, failing } = failingStore('read')
      const made = makeSessions({ store })
      const { cookie, session } = await loggedIn(made)
      const visit = visitOf(made.sessions, cookie)
      failing.on = true
      await expect(visit.get()).rejects.toMatchObject({ status: 503 })
      failing.on = false
      const renewed = await visit.regenerate(options)
      expect([renewed?.user?.name, renewed?.secret === session.secret]).toEqual(['ada', false])
    },
  )
})

describe.each(['logIn', 'logOut'] as const)('the error of a %s that fails', verb => {
  const attempt = (visit: ReturnType<typeof visitOf>) => (verb === 'logIn' ? visit.logIn(ada) : visit.logOut())

  it('says unknown where the step that failed came after a write', async () => {
    const store = new MemoryStore()
    const made = makeSessions({ store, rememberFor: '30d' })
    const { session, cookie, token } = await loggedIn(made, { ...ada, remember: true })
    let hasWritten = false
    const spied = (name: 'replace' | 'delete' | 'read', isRefused: (key: string) => boolean) => {
      const inner = store[name].bind(store) as (...args: unknown[]) => unknown
      store[name] = (async (...args: [string, ...unknown[]]) => {
        if (hasWritten && isRefused(args[0])) throw new SessionStoreError(name as 'read', 'not-applied', 'refused')
        hasWritten ||= name !== 'read'
        return inner(...args)
      }) as never
    }
    spied('replace', () => false)
    spied('read', () => verb === 'logIn')
    spied('delete', each => each === session.key)
    await expect(attempt(visitOf(made.sessions, [cookie, token]))).rejects.toMatchObject({
      outcome: 'unknown',
      cause: { outcome: 'not-applied' },
    })
  })

  it('says that nothing was written where its first step was refused', async () => {
    const store = new MemoryStore()
    const made = makeSessions({ store, rememberFor: '30d' })
    const { cookie } = await loggedIn(made)
    const refuse = (name: 'replace' | 'delete') => () =>
      Promise.reject(new SessionStoreError(name, 'not-applied', 'refused'))
    Object.assign(store, { replace: refuse('replace'), delete: refuse('delete') })
    await expect(attempt(visitOf(made.sessions, cookie))).rejects.toMatchObject({ outcome: 'not-applied' })
  })
})
