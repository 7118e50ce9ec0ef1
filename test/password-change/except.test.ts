// A logout everywhere beside what goes on in the same process: the session that it spares, and logins of the same user.
import type { UserSession } from 'coatcheck'
import { describe, expect, it } from 'vitest'
import { cookiesSent, grace, open, openWith, setUp, user } from '../support/manager-kit.ts'

type Visit = ReturnType<typeof open>
const NEW_IDS: [string, (visit: Visit) => Promise<any>][] = [
  ['a new ID', visit => visit.regenerate()],
  ['a new ID with a grace', visit => visit.regenerate(grace)],
]

describe.each(NEW_IDS)(
  'a logout everywhere that spares this session lets it live under %s, and its cookie is sent,',
  (_, renew) => {
    const begin = async () => {
      const at = setUp()
      const [here, there] = [await at.sessions.create({ user }), await at.sessions.create({ user })]
      const isSpared = async (visit: Visit, { secret }: UserSession) => {
        expect(cookiesSent(visit)).toEqual([secret])
        expect((await at.sessions.get(secret))?.secret).toBe(secret)
        expect(await at.sessions.get(there.secret)).toBeNull()
      }
      return { ...at, here, isSpared }
    }
    describe.each<[string, (session: UserSession) => any]>([
      ['session', session => session],
      ['key', session => session.key],
    ])('given by its old %s,', (_, exceptOf) => {
      it('that it got before', async () => {
        const { sessions, here, isSpared } = await begin()
        const visit = openWith(sessions, here)
        const next = await renew(visit)
        expect(await sessions.invalidateUser(1, { except: exceptOf(here) })).toBe(1)
        await isSpared(visit, next)
      })

      it.each(['before', 'after'] as const)('that is being written: %s the store has done it', async moment => {
        const { sessions, store, here, isSpared } = await begin()
        const visit = openWith(sessions, here)
        const pause = store.pause('replace', moment)
        const renewing = renew(visit)
        await pause.reached
        expect(await sessions.invalidateUser(1, { except: exceptOf(here) })).toBe(1)
        pause.resume()
        await isSpared(visit, await renewing)
      })

      it('that it gets twice meanwhile', async () => {
        const { sessions, store, here, isSpared } = await begin()
        const pause = store.pause('deleteUser', 'after')
        const invalidated = sessions.invalidateUser(1, { except: exceptOf(here) })
        await pause.reached
        const second = openWith(sessions, await renew(openWith(sessions, here)))
        const last = await renew(second)
        pause.resume()
        expect(await invalidated).toBe(1)
        await isSpared(second, last)
      })
    })
  },
)

it.each([1, 2])(
  'a late request with an old ID that leads to the spared session over %i new IDs sends its cookie too',
  async count => {
    const { sessions, manager } = setUp()
    const here = await sessions.create({ user })
    const node = count === 1 ? sessions : manager()
    let next = (await node.regenerate(here, grace))!
    if (count === 2) next = (await node.regenerate(next, grace))!
    const late = openWith(sessions, here)
    expect((await late.get())?.secret).toBe(next.secret)
    await sessions.invalidateUser(1, { except: here })
    expect(cookiesSent(late)).toEqual([next.secret])
  },
)

it.each(['invalidateUser', 'invalidateAll'] as const)(
  'a login that the store heard of after %s lives, and its cookie is sent',
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
    const session = (await login.get())!
    expect((await sessions.list(1)).map(({ key }) => key)).toEqual([session.key])
    expect(cookiesSent(login)).toEqual([session.secret])
  },
)
