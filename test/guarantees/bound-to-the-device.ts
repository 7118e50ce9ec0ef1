import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { BOUND_COOKIE, boundEdge, DeviceClient } from '../support/device-client.ts'
import { type GuaranteeKit, newUser, type SetUp, times } from '../support/guarantee-kit.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

const LIFE = 5 * MINUTE

/** What `coatcheck/device-bound` promises, on whichever store. */
export function boundToTheDevice({ setUp, atEveryPoint, backend: { dump } }: GuaranteeKit): void {
  const boundBrowser = async ({ sessions, clock, user }: SetUp) => {
    const browser = new DeviceClient(boundEdge(sessions))
    await browser.logIn(user)
    assert.equal((await browser.register()).status, 200)
    clock.advance(11 * SECOND)
    return browser
  }

  describe('a session that is bound to its device', () => {
    it('is renewed by proof, lost to a thief with a copied jar, and over at the logout', async () => {
      const at = await setUp()
      const browser = await boundBrowser(at)
      const thief = browser.copy()
      at.store.reset()
      assert.equal(await browser.user(), 'ada')
      assert.deepEqual(at.store.counts(), { read: 1 })
      at.clock.advance(LIFE)
      at.store.reset()
      assert.equal((await browser.refresh()).status, 200)
      assert.deepEqual(at.store.counts(), { read: 1, update: 1 })
      assert.equal(await browser.user(), 'ada')
      assert.equal(await thief.user(), null)
      await browser.logOut()
      assert.deepEqual(await (await browser.refresh()).json(), { continue: false })
    })

    it('ends in one state after 50 parallel refreshes, whichever value arrives', async () => {
      const at = await setUp({ storeTimeout: '20s' })
      const browser = await boundBrowser(at)
      at.clock.advance(LIFE)
      const responses = await Promise.all(times(50).map(() => browser.tab().refresh()))
      // One challenge is good for one proof; the others are told the next one.
      assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200, 403]))
      const values = responses.flatMap(response => response.headers.getSetCookie())
      assert.equal(values.length, 1)
      browser.jar.set(BOUND_COOKIE, /=([^;]*)/.exec(values[0]!)![1]!)
      assert.equal(await browser.user(), 'ada')
      browser.take(responses.find(({ status }) => status === 403)!)
      assert.equal((await browser.refresh()).status, 200)
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
      it(`never begins again by a registration or a refresh that ${name} overtakes`, async () => {
        for (const step of ['register', 'refresh'] as const)
          await atEveryPoint(
            {},
            async at => {
              const browser = new DeviceClient(boundEdge(at.sessions))
              await browser.logIn(at.user)
              if (step === 'refresh') await browser.register()
              at.clock.advance(step === 'refresh' ? LIFE : SECOND)
              return browser
            },
            async (_, browser) => (step === 'refresh' ? browser.refresh() : browser.register()),
            end,
            async (at, browser, outcome, where) => {
              assert.equal(outcome.status, 'fulfilled', where)
              assert.equal(await browser.user(), null, where)
              if (name !== 'another login') assert.deepEqual(await at.sessions.list(at.user.id), [], where)
              assert.deepEqual(await (await browser.refresh(browser.challenge!, 'x'.repeat(16))).json(), {
                continue: false,
              })
            },
          )
      })
  })
}
