import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { boundEdge, DeviceClient } from '../support/device-client.ts'
import { type GuaranteeKit, newUser, type SetUp, times } from '../support/guarantee-kit.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

/** How long a copied value is good: `lifetime`, and 5 minutes because clocks differ. */
const LIFE = 10 * MINUTE

/** What `coatcheck/device-bound` promises, on whichever store. */
export function boundToTheDevice({ setUp, atEveryPoint, backend: { dump } }: GuaranteeKit): void {
  const boundBrowser = ({ sessions, user }: SetUp) => new DeviceClient(boundEdge(sessions)).bind({ user })

  describe('a session that is bound to its device', () => {
    it('is renewed by proof, lost to a thief with a copied jar, and over at the logout', async () => {
      const at = await setUp()
      const browser = await boundBrowser(at)
      const thief = browser.copy()
      at.clock.advance(LIFE)
      assert.equal(await thief.user(), null)
      assert.equal((await browser.refresh()).status, 403)
      assert.equal((await browser.refresh()).status, 200)
      assert.equal(await browser.user(), 'ada')
      assert.equal(await thief.user(), null)
      await browser.logOut()
      assert.deepEqual(await (await browser.refresh()).json(), { continue: false })
    })

    it('costs a login, a page and a refresh no command more than an unbound one, and one write in all', async () => {
      const at = await setUp()
      const counted = async (run: () => Promise<unknown>) => {
        at.store.reset()
        await run()
        return at.store.counts()
      }
      const browser = new DeviceClient(boundEdge(at.sessions))
      assert.deepEqual(await counted(() => browser.logIn(at.user)), { create: 1 })
      assert.deepEqual(await counted(() => browser.register()), { read: 1, update: 1 })
      // The first value that comes shows that the answer arrived: that is written down once, however many come at a time.
      const tabs = times(5).map(() => browser.copy(browser.device))
      assert.deepEqual(await counted(() => Promise.all(tabs.map(tab => tab.user()))), { read: 5, update: 1 })
      assert.deepEqual(await counted(() => browser.user()), { read: 1 })
      at.clock.advance(2 * MINUTE)
      assert.deepEqual(await counted(() => browser.refresh()), { read: 1 })
      assert.deepEqual(await counted(() => browser.user()), { read: 1 })
      assert.deepEqual(await counted(() => browser.copy().loseValue().user()), { read: 1 })
    })

    it('keeps in the database neither a value nor a challenge', async () => {
      const at = await setUp()
      const browser = await boundBrowser(at)
      const secrets = [...browser.jar.values(), browser.challenge!]
      assert.equal(secrets.length, 3)
      const kept = dump === undefined ? JSON.stringify(at.store.calls) : await dump()
      assert.ok(kept.length > 100)
      for (const secret of secrets) assert.ok(!kept.includes(secret))
    })

    for (const [name, end] of Object.entries({
      'a logout': (at: SetUp, browser: DeviceClient) => at.manager().destroy(browser.jar.get('session_id') as never),
      'logout-everywhere': (at: SetUp) => at.manager().invalidateUser(at.user.id),
      'another login': (at: SetUp, browser: DeviceClient) =>
        at.manager().logIn(browser.jar.get('session_id') as never, { user: { id: newUser(), name: 'max' } }),
    }))
      it(`never begins again by a registration, a first value or a refresh that ${name} overtakes`, async () => {
        for (const step of ['register', 'state', 'refresh'] as const)
          await atEveryPoint(
            {},
            async at => {
              const browser = new DeviceClient(boundEdge(at.sessions))
              await browser.logIn(at.user)
              if (step !== 'register') await browser.register()
              at.clock.advance(SECOND)
              return browser
            },
            async (_, browser) => browser[step](),
            end,
            async (at, browser, outcome, where) => {
              assert.equal(outcome.status, 'fulfilled', where)
              assert.equal(await browser.user(), null, where)
              if (name !== 'another login') assert.deepEqual(await at.sessions.list(at.user.id), [], where)
              const told = await browser.refresh(browser.challenge!, 'x'.repeat(16))
              assert.deepEqual(await told.json(), { continue: false })
            },
          )
      })
  })
}
