import { describe, expect, it } from 'vitest'
import { cookiesSent, grace, type open, openWith, setUp, user } from '../support/manager-kit.ts'

describe('logout-everywhere but here, beside a new ID for the session here: that session lives, and its cookie is sent', () => {
  const changes = {
    'regenerate with a grace': (visit: ReturnType<typeof open>) => visit.regenerate(grace),
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
        const visit = openWith(sessions, here)
        const next = (await change(visit))!
        expect(await sessions.invalidateUser(1, { except: exceptOf(here) as never })).toBe(1)
        expect(cookiesSent(visit)).toEqual([next.secret])
        expect((await sessions.get(next.secret))?.key).toBe(next.key)
        expect(await sessions.get(other.secret)).toBeNull()
      })

      for (const moment of ['before', 'after'] as const)
        it(`${verb} whose write is ${moment === 'before' ? 'not yet' : 'just'} done when it runs, with the old ${what}`, async () => {
          const { sessions, store } = setUp()
          const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
          const visit = openWith(sessions, here)
          const pause = store.pause('replace', moment)
          const changing = change(visit)
          await pause.reached
          expect(await sessions.invalidateUser(1, { except: exceptOf(here) as never })).toBe(1)
          pause.resume()
          const next = (await changing)!
          expect(cookiesSent(visit)).toEqual([next.secret])
          expect((await sessions.get(next.secret))?.key).toBe(next.key)
          expect(await sessions.get(other.secret)).toBeNull()
        })

      it(`${verb} while it runs, twice, with the old ${what}`, async () => {
        const { sessions, store } = setUp()
        const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
        const pause = store.pause('deleteUser', 'after')
        const invalidated = sessions.invalidateUser(1, { except: exceptOf(here) as never })
        await pause.reached
        const first = openWith(sessions, here)
        const next = (await change(first))!
        const second = openWith(sessions, next)
        const last = (await change(second))!
        pause.resume()
        expect(await invalidated).toBe(1)
        expect(cookiesSent(second)).toEqual([last.secret])
        expect((await sessions.get(last.secret))?.key).toBe(last.key)
        expect(await sessions.get(other.secret)).toBeNull()
      })
    }
})

it('a parallel request that brought the old ID, and was led on to the new one, sends it too', async () => {
  const { sessions } = setUp()
  const here = await sessions.create({ user })
  const next = (await sessions.regenerate(here, grace))!
  const late = openWith(sessions, here)
  expect((await late.get())?.secret).toBe(next.secret)
  await sessions.invalidateUser(1, { except: here })
  expect(cookiesSent(late)).toEqual([next.secret])
})

it('so does one that was led on to what another node had rotated', async () => {
  const { sessions, manager } = setUp()
  const node = manager()
  const here = await sessions.create({ user })
  const between = (await node.regenerate(here, grace))!
  const next = (await node.regenerate(between, grace))!
  const late = openWith(sessions, here)
  expect((await late.get())?.secret).toBe(next.secret)
  await sessions.invalidateUser(1, { except: here })
  expect(cookiesSent(late)).toEqual([next.secret])
})
