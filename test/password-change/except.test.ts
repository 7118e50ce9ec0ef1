import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { onlyHost } from '../support/only-host.ts'
import { testClock } from '../support/test-clock.ts'

const user = { id: 42, name: 'ada' }
function setUp() {
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  return { store, clock, sessions: new SessionManager({ store, now: clock, sweepInterval: false }) }
}
const open = (sessions: SessionManager, secret: string) =>
  openVisit(sessions, { method: 'POST', secure: true, cookie: `session_id=${secret}`, header: onlyHost })
const cookieOf = ({ headers }: { headers: Headers }) => headers.getSetCookie().map(each => each.split(/[=;]/)[1])

describe('logout-everywhere but here, beside a new ID for the session here: that session lives, and its cookie is sent', () => {
  const changes = {
    rotate: (visit: ReturnType<typeof open>) => visit.regenerate({ grace: '1m' }),
    regenerate: (visit: ReturnType<typeof open>) => visit.regenerate(),
  }
  const excepts = {
    session: (session: { key: string }) => session,
    key: (session: { key: string }) => session.key,
  }
  for (const [verb, change] of Object.entries(changes))
    for (const [what, exceptOf] of Object.entries(excepts)) {
      it(`${verb} before it, with the old ${what}`, async () => {
        const { sessions } = setUp()
        const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
        const visit = open(sessions, here.secret)
        const next = (await change(visit))!
        expect(await sessions.invalidateUser(42, { except: exceptOf(here) as never })).toBe(1)
        expect(cookieOf(visit)).toEqual([next.secret])
        expect((await sessions.get(next.secret))?.key).toBe(next.key)
        expect(await sessions.get(other.secret)).toBeNull()
      })

      for (const moment of ['before', 'after'] as const)
        it(`${verb} whose write is ${moment === 'before' ? 'not yet' : 'just'} done when it runs, with the old ${what}`, async () => {
          const { sessions, store } = setUp()
          const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
          const visit = open(sessions, here.secret)
          const pause = store.pause('replace', moment)
          const changing = change(visit)
          await pause.reached
          expect(await sessions.invalidateUser(42, { except: exceptOf(here) as never })).toBe(1)
          pause.resume()
          const next = (await changing)!
          expect(cookieOf(visit)).toEqual([next.secret])
          expect((await sessions.get(next.secret))?.key).toBe(next.key)
          expect(await sessions.get(other.secret)).toBeNull()
        })

      it(`${verb} while it runs, twice, with the old ${what}`, async () => {
        const { sessions, store } = setUp()
        const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
        const pause = store.pause('deleteUser', 'after')
        const invalidated = sessions.invalidateUser(42, { except: exceptOf(here) as never })
        await pause.reached
        const first = open(sessions, here.secret)
        const next = (await change(first))!
        const second = open(sessions, next.secret)
        const last = (await change(second))!
        pause.resume()
        expect(await invalidated).toBe(1)
        expect(cookieOf(second)).toEqual([last.secret])
        expect((await sessions.get(last.secret))?.key).toBe(last.key)
        expect(await sessions.get(other.secret)).toBeNull()
      })
    }
})

it('a parallel request that brought the old ID, and was led on to the new one, sends it too', async () => {
  const { sessions } = setUp()
  const here = await sessions.create({ user })
  const next = (await sessions.regenerate(here, { grace: '1m' }))!
  const late = open(sessions, here.secret)
  expect((await late.get())?.secret).toBe(next.secret)
  await sessions.invalidateUser(42, { except: here })
  expect(cookieOf(late)).toEqual([next.secret])
})

it('so does one that was led on to what another node had rotated', async () => {
  const { sessions, store, clock } = setUp()
  const node = new SessionManager({ store, now: clock, sweepInterval: false })
  const here = await sessions.create({ user })
  const between = (await node.regenerate(here, { grace: '1m' }))!
  const next = (await node.regenerate(between, { grace: '1m' }))!
  const late = open(sessions, here.secret)
  expect((await late.get())?.secret).toBe(next.secret)
  await sessions.invalidateUser(42, { except: here })
  expect(cookieOf(late)).toEqual([next.secret])
})
