// Two requests of one browser, on two nodes: one is stopped before and after each call that it makes of the store, the other
// runs to its end in between. And what one request does twice, or after the end.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { called, HANDLERS, serve, sidOf, userOf } from './service.ts'

const SID = sidOf('one browser')
const NEXT = sidOf('next, after regenerate')

function node(store: BarrierStore) {
  const sessions = new SessionManager({ store: store as never, sweepInterval: false })
  return { sessions, store: connectStore(sessions, { userOf: userOf as never }) }
}
type Node = ReturnType<typeof node>

/** What a request does with a session that it has loaded. */
const ACTS: Record<string, (at: Node, loaded: any) => Promise<unknown>> = {
  'writes a': ({ store }, loaded) => store.set(SID, Object.assign(loaded, { a: 1 })),
  'writes b': ({ store }, loaded) => store.set(SID, Object.assign(loaded, { b: 1 })),
  touches: ({ store }, loaded) => store.touch(SID, Object.assign(loaded, { cookie: { originalMaxAge: 5000 } })),
  'logs in as 43 in place': ({ store }, loaded) => store.set(SID, Object.assign(loaded, { user: '43' })),
  'logs out': ({ store }) => store.destroy(SID),
  'gets a new ID': async ({ store }, loaded) => {
    await store.destroy(SID)
    await store.set(NEXT, { ...loaded })
  },
  'ends all sessions of 42': ({ sessions }) => sessions.invalidateUser(42n),
}
const ENDS = ['logs out', 'gets a new ID']

describe.each(Object.keys(ACTS))('beside a request that %s, one that', first => {
  it.each(Object.keys(ACTS))('%s', async second => {
    for (const user of [undefined, '42']) {
      // Until it runs to its end without a stop.
      for (let stop = 0; await runAt(stop); ) stop += 1
      async function runAt(at: number): Promise<boolean> {
        const barrier = BarrierStore.over(new MemoryStore())
        const [here, there] = [node(barrier), node(barrier)]
        await here.store.set(SID, { cookie: {}, a: 0, b: 0, ...(user && { user }) })
        const [one, other] = [await here.store.get(SID), await there.store.get(SID)]
        for (let skipped = 0; skipped < Math.floor(at / 2); skipped += 1) barrier.next('any', proceed => proceed())
        const pause = barrier.pause('any', at % 2 === 0 ? 'before' : 'after')
        const running = ACTS[first]!(here, one)
        const isStopped = await Promise.race([pause.reached.then(() => true), running.then(() => false)])
        if (!isStopped) pause.resume()
        await ACTS[second]!(there, other)
        pause.resume()
        await running
        const now = await node(barrier).store.get(SID)
        const acts = [first, second]
        const where = `${first}, ${second}, user ${user}, stop ${at}: ${JSON.stringify(now)}`
        if (acts.some(act => ENDS.includes(act))) expect(now, where).toBeNull()
        else if (acts.includes('ends all sessions of 42') && user === '42') {
          // A login as somebody else may have been first, or later.
          if (now !== null)
            expect([now.user, acts], where).toEqual(['43', expect.arrayContaining(['logs in as 43 in place'])])
        } else {
          const isSwitched = acts.includes('logs in as 43 in place')
          expect(now?.user, where).toBe(isSwitched ? '43' : user)
          // What 42 writes late is not in the session of 43.
          if (isSwitched && user === '42') return isStopped
          if (acts.includes('writes a')) expect(now, where).toMatchObject({ a: 1 })
          if (acts.includes('writes b')) expect(now, where).toMatchObject({ b: 1 })
        }
        const listed = [...(await here.sessions.list(42n)), ...(await here.sessions.list(43n))]
        const mine = await node(barrier).store.get(NEXT)
        for (const session of listed) expect([now?.user, mine?.user], where).toContain(String(session.user?.id))
        return isStopped
      }
    }
  })
})

describe('one request', () => {
  it('that saves twice at once writes both, and begins one session', async () => {
    const { browser, sessions } = await serve({
      ...HANDLERS,
      '/twice': async (request, response) => {
        const { session } = request
        session.a = 1
        const first = called(callback => session.save(callback))
        session.b = 2
        await Promise.all([first, called(callback => session.save(callback))])
        response.end(Object.keys(session).join())
      },
    })
    const one = browser()
    expect((await one.go('/twice')).body).toBe('cookie,a,b')
    expect(JSON.parse((await one.go('/read')).body)).toEqual({ a: 1, b: 2 })
    expect((await one.go('/twice')).body, 'loaded').toBe('cookie,a,b')
    expect(await sessions.count()).toBe(1)
  })

  it('that saves after it destroyed the session writes nothing, with a new session or an old one', async () => {
    const { browser, sessions, calls } = await serve({
      ...HANDLERS,
      '/after': async (request, response) => {
        const { session } = request
        session.a = 1
        await called(callback => session.destroy(callback))
        await called(callback => session.save(callback))
        await called(callback => session.save(callback))
        response.end()
      },
    })
    const one = browser()
    await one.go('/after')
    // The read looks for the remember token that began the session.
    expect(calls).toEqual(['read', 'delete'])
    await one.go('/login?user=42')
    await one.go('/after')
    expect(await sessions.count()).toBe(0)
    expect((await one.go('/read')).body).toBe('{}')
  })

  it.each(['before', 'after'] as const)(
    'that destroys a session while it is stored for the first time leaves none (%s)',
    async when => {
      const barrier = BarrierStore.over(new MemoryStore())
      const { store, sessions } = node(barrier)
      const pause = barrier.pause('create', when)
      const saving = store.set(SID, { cookie: {}, user: '42' })
      await pause.reached
      await store.destroy(SID)
      pause.resume()
      await saving
      expect(await store.get(SID)).toBeNull()
      expect(await sessions.list(42n)).toEqual([])
    },
  )

  it('that saves the object that regenerate replaced does not bring it back', async () => {
    const { browser, sessions } = await serve({
      ...HANDLERS,
      '/both': async (request, response) => {
        const before = request.session
        const saving = called(callback => before.save(callback))
        await called(callback => before.regenerate(callback))
        request.session.user = '42'
        before.late = true
        await Promise.all([saving, called(callback => before.save(callback))])
        response.end()
      },
    })
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    const copy = browser()
    for (const [name, value] of one.cookies) copy.cookies.set(name, value)
    await one.go('/both')
    expect(JSON.parse((await one.go('/read')).body)).toEqual({ user: '42' })
    expect((await copy.go('/read')).body).toBe('{}')
    expect(await sessions.count()).toBe(1)
  })

  it('that reloads works on what is stored, and fails if there is nothing any more', async () => {
    const { browser, store, sessions } = await serve({
      ...HANDLERS,
      '/reload': async (request, response) => {
        request.session.mine = 1
        const session = (await sessions.get(store.idOf(request.sessionID)))!
        await sessions.update(session, { theirs: 2 })
        await called(callback => request.session.reload(callback))
        const { mine, theirs } = request.session
        await sessions.destroy(session)
        const failed = await called(callback => request.session.reload(callback)).catch(String)
        response.end(JSON.stringify({ mine, theirs, failed }))
      },
    })
    const one = browser()
    await one.go('/login?user=42')
    expect(JSON.parse((await one.go('/reload')).body)).toEqual({ theirs: 2, failed: 'Error: failed to load session' })
  })
})
