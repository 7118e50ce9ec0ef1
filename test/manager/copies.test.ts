import { afterEach, describe, expect, it, vi } from 'vitest'
import { connectSid, OldStoreStub, SECRET } from '../support/old-sessions.ts'
import { onlyHost } from '../support/only-host.ts'
import { testClock } from '../support/test-clock.ts'

/** Copies of the package in one process: its ESM and CommonJS build, or one in each bundle of a framework. */
async function loadCopy() {
  vi.resetModules()
  const core = await import('coatcheck')
  const { openVisit } = await import('coatcheck/custom-server')
  const { nodeVisits } = await import('coatcheck/node')
  const { fetchVisits } = await import('coatcheck/fetch')
  const { sessionImporter, fromExpressSession } = await import('coatcheck/import')
  const { MemoryStore } = await import('coatcheck/stores/memory')
  return { ...core, openVisit, nodeVisits, fetchVisits, sessionImporter, fromExpressSession, MemoryStore }
}
type Copy = Awaited<ReturnType<typeof loadCopy>>

const [one, two] = [await loadCopy(), await loadCopy()]
const user = { id: 42, name: 'ada' }

function managerOf(copy: Copy, options: object = {}) {
  const store = new copy.MemoryStore()
  return new copy.SessionManager({ store, now: testClock(), sweepInterval: false, rememberFor: '30d', ...options })
}

const open = (copy: Copy, sessions: object, cookie: string | null = null) =>
  copy.openVisit(sessions as never, { method: 'POST', secure: true, cookie, header: onlyHost })

afterEach(() => {
  vi.resetModules()
})

it('the two copies of these tests are two', () => {
  expect(one.SessionManager).not.toBe(two.SessionManager)
  expect(managerOf(one)).not.toBeInstanceOf(two.SessionManager)
})

describe('the visits of one copy and the manager of another', () => {
  const cookieOf = (headers: Headers) => headers.getSetCookie().map(each => each.split(';')[0]!)

  it('log in, remember, show and log out, over openVisit', async () => {
    const sessions = managerOf(one)
    const login = open(two, sessions)
    await login.logIn({ user, remember: true })
    const cookies = cookieOf(login.headers)
    expect(cookies.map(each => each.split('=')[0])).toEqual(['session_id', 'remember_token'])
    expect((await open(two, sessions, cookies.join('; ')).requireUser({ freshWithin: '1m' })).user.id).toBe(42n)
    const remembered = open(two, sessions, cookies[1]!)
    expect((await remembered.get())?.remembered).toBe(true)
    const logOut = open(two, sessions, cookies.join('; '))
    await logOut.logOut()
    expect(cookieOf(logOut.headers)).toEqual(['session_id=', 'remember_token='])
    expect(await open(two, sessions, cookies[0]!).get()).toBeNull()
  })

  it('understand each other at fetchVisits and nodeVisits, also for a tenant', async () => {
    for (const sessions of [managerOf(one), managerOf(one).namespace('acme')]) {
      const { secret } = await sessions.create({ user })
      const headers = { cookie: `session_id=${secret}`, host: 'a.example' }
      const visit = two.fetchVisits(sessions).of(new Request('https://a.example/', { headers }))
      expect((await visit.requireUser()).user.name).toBe('ada')
      const visits = two.nodeVisits(sessions, { isSecure: () => true })
      expect((await visits.of({ method: 'GET', headers } as never).requireUser()).user.name).toBe('ada')
    }
  })
})

it('the importer of one copy takes sessions over, and lets them end, with visits and the manager of another', async () => {
  const sessions = managerOf(one)
  const old = new OldStoreStub()
  old.put('an-old-id', { user })
  const from = two.fromExpressSession<{ user: typeof user }>({ secret: SECRET, store: old })
  const importer = two.sessionImporter(sessions, { from, toLogin: found => found })
  const ask = (visits: ReturnType<Copy['fetchVisits']>) =>
    importer.import(connectSid('an-old-id'), header =>
      visits.of(new Request('https://a.example/', { method: 'POST', headers: { cookie: header } })),
    )
  const { visit } = await ask(one.fetchVisits(sessions))
  expect((await visit.get())?.user?.name).toBe('ada')
  await (await ask(one.fetchVisits(sessions))).visit.logOut()
  const late = await ask(two.fetchVisits(sessions))
  expect([await late.visit.get(), old.records.size]).toEqual([null, 0])
})

describe('a session of one copy at the manager of another', () => {
  it('is updated, taken from, given a new ID, remembered, excepted and destroyed', async () => {
    const store = new one.MemoryStore()
    const [here, there] = [managerOf(one, { store }), managerOf(two, { store })]
    const session = await here.create({ user, data: { n: 1, flash: 'hello' } })
    const updated = (await there.update(session, { n: 2 }))!
    expect(updated.data).toEqual({ n: 2, flash: 'hello' })
    expect(await here.take(updated, 'flash')).toBe('hello')
    expect(there.isFresh(updated, '1m')).toBe(true)
    const rotated = (await here.regenerate(updated, { grace: '1m' }))!
    expect((await there.regenerate(await here.get(session.secret), { grace: '1m' }))?.secret).toBe(rotated.secret)
    expect(await there.issueRememberToken(rotated as never)).toMatch(/^.{43}\..{43}$/)
    await there.create({ user })
    await there.invalidateUser(42, { except: rotated })
    expect((await here.list(42)).map(({ key }) => key)).toEqual([rotated.key])
    await there.destroy(rotated)
    expect(await here.get(rotated.secret)).toBeNull()
  })

  it('of another tenant is refused, as by its own', async () => {
    const store = new one.MemoryStore()
    const session = await managerOf(one, { store }).namespace('blue').create()
    const there = managerOf(two, { store })
    await expect(there.update(session, { n: 1 })).rejects.toThrow('session: belongs to another namespace')
    expect((await there.namespace('blue').update(session, { n: 1 }))?.data).toEqual({ n: 1 })
  })
})

it('the errors of one copy are errors of the other', async () => {
  const error = await managerOf(one, { limit: { max: 1, onLimit: 'refuse' } })
    .create({ user })
    .then(() => open(two, managerOf(one)))
    .then(visit => visit.requireUser())
    .catch(cause => cause)
  for (const copy of [one, two]) {
    expect(error).toBeInstanceOf(copy.SessionError)
    expect(error).not.toBeInstanceOf(copy.SessionStoreError)
    const down = new copy.SessionStoreError('read', 'not-applied', 'down')
    expect(down).toBeInstanceOf(one.SessionStoreError)
    expect(down).toBeInstanceOf(two.SessionError)
  }
})

it('a store of one copy that fails with its own error keeps the outcome that it says', async () => {
  const store = new one.MemoryStore()
  const down = new one.SessionStoreError('create', 'not-applied', 'down')
  store.create = () => Promise.reject(down)
  await expect(managerOf(two, { store }).create({ user })).rejects.toBe(down)
})

describe('copies of versions that do not understand each other', () => {
  // What such a version is to this one: its symbols have another number.
  const seenBySuch = (thing: object, name: string) => {
    const key = Symbol.for(name)
    expect((thing as Record<symbol, unknown>)[key]).toBeDefined()
    return Object.create(thing, { [key]: { value: undefined } })
  }

  it('refuse each other’s managers, and say why', () => {
    const sessions = seenBySuch(managerOf(one), 'coatcheck.context.1')
    expect(() => open(two, sessions)).toThrow(TypeError)
    expect(() => open(two, sessions)).toThrow(/expected a SessionManager, .*two versions of coatcheck/)
  })

  it('refuse each other’s sessions, and say why', async () => {
    const session = seenBySuch(await managerOf(one).create(), 'coatcheck.session.1')
    await expect(managerOf(two).update(session, { n: 1 })).rejects.toThrow(
      /expected the object that get\(\) .*two versions of coatcheck/,
    )
  })
})

it('what is no manager is refused by visits, by name', () => {
  for (const wrong of [new one.MemoryStore(), {}, null, undefined, 'sessions', Object.create(managerOf(one))])
    expect(() => open(one, wrong as never)).toThrow(/expected a SessionManager/)
})
