import assert from 'node:assert/strict'
import type { SessionManager } from 'coatcheck'
import { describe, it } from 'vitest'
import { type Data, type GuaranteeKit, newUser, type SetUp, times } from '../support/guarantee-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

/** More store calls than `invalidateAll` needs for the few sessions of a test. */
const MAX_POINTS = 60

interface Held {
  readonly user: any
  readonly visitor: any
  readonly token: string
}

export function endAllIsComplete({ setUp, atEveryPoint }: GuaranteeKit): void {
  describe('G3: invalidateAll is complete', () => {
    const remembering = { rememberFor: '30d' } as const

    async function prepare(at: SetUp): Promise<Held> {
      // The store may have sessions of other tests: with them the calls of the next one would be others each time.
      await at.manager().invalidateAll()
      const user = await at.sessions.create({ user: at.user })
      const token = await at.sessions.issueRememberToken(user)
      const visitor = await at.sessions.create({ data: { cart: 1 } })
      at.clock.advance(10 * MINUTE)
      at.store.reset()
      return { user, visitor, token }
    }

    const derivations: Record<string, (sessions: SessionManager<Data>, held: Held) => Promise<unknown>> = {
      regenerate: (sessions, { user }) => sessions.regenerate(user),
      'regenerate of a visitor': (sessions, { visitor }) => sessions.regenerate(visitor.secret),
      rotate: (sessions, { user }) => sessions.regenerate(user.secret, { grace: '1m' }),
      'rotate of a visitor, twice': async (sessions, { visitor }) => {
        const next = await sessions.regenerate(visitor, { grace: '1m' })
        return next && sessions.regenerate(next, { grace: '1m' })
      },
      update: (sessions, { visitor }) => sessions.update(visitor, { a: 1 }),
      'get with a touch': (sessions, { user }) => sessions.get(user.secret),
      remember: (sessions, { user }) => sessions.issueRememberToken(user),
      recall: (sessions, { token }) => sessions.redeemRememberToken(token),
    }

    async function isOver(at: SetUp, held: Held, derived: any, where: string): Promise<void> {
      // Another node, which has seen nothing end.
      const sessions: SessionManager<Data> = at.manager()
      for (const { secret } of [held.user, held.visitor]) assert.equal(await sessions.get(secret), null, where)
      if (derived?.secret) assert.equal(await sessions.get(derived.secret), null, where)
      if (derived?.session) assert.equal(await sessions.get(derived.session.secret), null, where)
      if (derived?.token) assert.equal(await sessions.redeemRememberToken(derived.token), null, where)
      if (typeof derived === 'string') assert.equal(await sessions.redeemRememberToken(derived), null, where)
      assert.equal(await sessions.redeemRememberToken(held.token), null, where)
      assert.deepEqual(await sessions.list(at.user.id), [], where)
    }

    for (const [name, derive] of Object.entries(derivations)) {
      it(`nothing that follows from a session by ${name} outlives invalidateAll, at any point`, () =>
        atEveryPoint(
          remembering,
          prepare,
          ({ sessions }, held) => derive(sessions, held),
          ({ manager }) => manager().invalidateAll(),
          (at, held, outcome, where) => isOver(at, held, outcome.status === 'fulfilled' ? outcome.value : null, where),
        ))

      it(`${name} at any point of invalidateAll saves nothing`, async () => {
        for (let index = 0, isPaused = true; isPaused; index++) {
          assert.ok(index < MAX_POINTS, 'invalidateAll never comes to an end')
          for (const when of ['before', 'after'] as const) {
            const at = await setUp(remembering)
            const held = await prepare(at)
            for (const _ of times(index)) at.store.next('any', proceed => proceed())
            const pause = at.store.pause('any', when)
            const running = at.sessions.invalidateAll()
            isPaused = await Promise.race([pause.reached.then(() => true), running.then(() => false)])
            const [outcome] = await Promise.allSettled([isPaused ? derive(at.manager(), held) : null])
            pause.resume()
            await running
            const derived = outcome!.status === 'fulfilled' ? outcome!.value : null
            await isOver(at, held, derived, `${name} ${when} call ${index + 1}`)
          }
        }
      })
    }

    for (const [name, skew] of [
      ['ten minutes behind', -10 * MINUTE],
      ['forty minutes ahead', 40 * MINUTE],
    ] as const)
      it(`from a clock that is ${name}, invalidateAll ends every session and remember token`, async () => {
        const at = await setUp(remembering)
        const held = await prepare(at)
        const fresh = await at.sessions.create({ user: { id: newUser(), name: 'max' } })
        const visitor = await at.sessions.create()
        const renewed = [
          await at.sessions.regenerate(fresh, { grace: '1m' }),
          await at.sessions.regenerate(visitor, { grace: '1m' }),
          await at.sessions.regenerate(held.visitor),
        ]
        const now = () => at.clock() + skew
        await at.manager({ now }).invalidateAll()
        await isOver(at, held, null, name)
        for (const session of [fresh, visitor, ...renewed])
          for (const options of [{}, { now }]) assert.equal(await at.manager(options).get(session!.secret), null)
      })

    it('of 700 sessions that get new IDs all the while, on two nodes, none is left, nor any of what followed', async () => {
      const { sessions, manager } = await setUp(remembering)
      const nodes = [sessions, manager()]
      const owners = times(350).map(() => newUser())
      const latest: any[] = []
      for (const part of times(14))
        latest.push(
          ...(await Promise.all(
            times(50).map(index =>
              index % 2
                ? sessions.create({ user: { id: owners[part * 25 + (index >> 1)]!, name: 'ada' } })
                : sessions.create(),
            ),
          )),
        )
      const secrets = new Set<string>(latest.map(({ secret }) => secret))
      let isEnding = true
      const renew = async (start: number) => {
        for (let at = start; isEnding; at = (at + 37) % latest.length) {
          // A store of this process would answer without end before the walk has its next turn.
          await new Promise(setImmediate)
          const next = await nodes[at % 2]!.regenerate(latest[at], { grace: '1m' })
          if (next === null) continue
          latest[at] = next
          secrets.add(next.secret)
        }
      }
      const renewals = Promise.all(times(6).map(each => renew(each * 111)))
      assert.ok((await nodes[1]!.invalidateAll()) >= 700)
      isEnding = false
      await renewals
      const other = manager()
      const left = await Promise.all([...secrets].map(secret => other.get(secret as never, { touch: false })))
      assert.deepEqual(
        left.filter(session => session !== null),
        [],
      )
    }, 120_000)
  })
}
