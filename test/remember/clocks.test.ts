// Remember-me on several nodes whose clocks differ.
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { DAY, device, GRACE, setUpRemember as setUp, times } from '../support/remembered.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

describe('on nodes whose clocks are up to five minutes apart', () => {
  const skews = [-5 * MINUTE, -90 * SECOND, 30 * SECOND, 90 * SECOND, 5 * MINUTE]
  for (const skew of skews) {
    const apart = `(${skew / SECOND} s)`
    const skewed = () => {
      const at = setUp()
      return { ...at, other: at.manager({ now: () => at.clock() + skew }) }
    }

    it(`parallel uses of a token are no theft, also where the browser comes back in between ${apart}`, async () => {
      for (const swapped of [false, true]) {
        const at = skewed()
        const { token } = await device(at)
        const [one, two] = swapped ? [at.other, at.sessions] : [at.sessions, at.other]
        const first = (await one.redeemRememberToken(token))!
        expect((await two.redeemRememberToken(token))?.token).toBe(first.token)
        expect(await one.get(first.session.secret)).not.toBeNull()
        for (const _ of times(3)) {
          at.clock.advance(20 * SECOND)
          for (const node of [one, two]) {
            const again = (await node.redeemRememberToken(token))!
            expect([again.session.secret, again.token]).toEqual([first.session.secret, first.token])
            expect(await node.get(first.session.secret)).not.toBeNull()
          }
        }
        expect(at.thefts()).toEqual([])
      }
    })

    it(`a use of a token that is tried again since its response was lost is no theft, at any time ${apart}`, async () => {
      for (let wait = 0; wait <= 30 * MINUTE; wait += 20 * SECOND)
        for (const swapped of [false, true]) {
          const at = skewed()
          const { token } = await device(at)
          const [one, two] = swapped ? [at.other, at.sessions] : [at.sessions, at.other]
          await one.redeemRememberToken(token)
          at.clock.advance(wait)
          // Two windows that open together: either answer may be the one that the browser keeps. The session of the one may
          // end for that of the other; the next token is the same.
          const answers = await Promise.all([one.redeemRememberToken(token), two.redeemRememberToken(token)])
          expect(answers[0]!.token).toBe(answers[1]!.token)
          const found = await Promise.all(answers.map(answer => two.get(answer!.session.secret)))
          expect(found.filter(session => session !== null)).not.toEqual([])
          for (const node of [two, one]) expect(await node.redeemRememberToken(token)).not.toBeNull()
          at.clock.advance(DAY)
          expect(await one.redeemRememberToken(answers[0]!.token!)).not.toBeNull()
          expect(await two.redeemRememberToken(answers[1]!.token!)).not.toBeNull()
          expect(at.thefts()).toEqual([])
        }
    })

    it(`a visit counts, whichever node made the session ${apart}`, async () => {
      const at = skewed()
      const { token } = await device(at)
      at.store.next('create', faults.rejects)
      await expect(at.sessions.redeemRememberToken(token)).rejects.toMatchObject({ operation: 'create' })
      const first = (await at.other.redeemRememberToken(token))!
      await at.sessions.get((await at.sessions.regenerate(first.session.secret))!)
      at.clock.advance(GRACE + CLOCK_TOLERANCE + 1)
      expect(await at.sessions.redeemRememberToken(token)).toBeNull()
      expect(at.thefts()).toHaveLength(1)
    })

    it(`a visit with an earlier session is not taken for one with what was lost ${apart}`, async () => {
      const at = skewed()
      const { token } = await device(at)
      const first = (await at.other.redeemRememberToken(token))!
      at.clock.advance(SECOND)
      await at.sessions.redeemRememberToken(first.token!)
      await at.sessions.get(first.session.secret)
      at.clock.advance(DAY)
      expect(await at.sessions.redeemRememberToken(first.token!)).not.toBeNull()
      expect(at.thefts()).toEqual([])
    })

    it(`a stolen token is found out on the second use, in either order ${apart}`, async () => {
      for (const swapped of [false, true]) {
        const at = skewed()
        const { token } = await device(at)
        const [victim, thief] = swapped ? [at.other, at.sessions] : [at.sessions, at.other]
        const first = (await victim.redeemRememberToken(token))!
        await thief.get(first.session.secret)
        at.clock.advance(GRACE + CLOCK_TOLERANCE + 1)
        expect(await thief.redeemRememberToken(token)).toBeNull()
        expect(at.thefts()).toHaveLength(1)
        expect(await victim.get(first.session.secret)).toBeNull()
        expect(await victim.redeemRememberToken(first.token!)).toBeNull()
      }
    })
  }

  it('a visit on a node whose clock is behind is the first one: the next, elsewhere, writes nothing', async () => {
    const at = setUp()
    const { token } = await device(at)
    const { session } = (await at.sessions.redeemRememberToken(token))!
    await at.manager({ now: () => at.clock() - 5 * MINUTE }).get(session.secret)
    at.store.reset()
    expect(await at.manager().get(session.secret)).not.toBeNull()
    expect(at.store.counts()).toEqual({ read: 1 })
  })

  it('a logout ends what the device had before, where a slower node holds it for live', async () => {
    const at = setUp({ idleTimeout: '30m' })
    const slower = at.manager({ now: () => at.clock() - 4 * MINUTE })
    const before = (await slower.redeemRememberToken((await device(at)).token))!
    at.clock.advance(28 * MINUTE)
    expect(await at.sessions.get(before.session.secret)).toBeNull()
    const { session } = (await at.sessions.redeemRememberToken(before.token!))!
    expect(await slower.get(before.session.secret, { touch: false })).not.toBeNull()
    await at.sessions.destroy(session)
    expect(await slower.get(before.session.secret)).toBeNull()
  })

  it('a stolen token whose answer the victim never used is found out at the second use of the next one, by either', async () => {
    for (const isThiefFirst of [false, true]) {
      const at = setUp()
      const { token } = await device(at)
      const victim = (await at.sessions.redeemRememberToken(token))!
      at.clock.advance(DAY)
      const thief = (await at.sessions.redeemRememberToken(token))!
      expect(await at.sessions.get(victim.session.secret)).toBeNull()
      const [first, second] = isThiefFirst ? [thief, victim] : [victim, thief]
      const used = (await at.sessions.redeemRememberToken(first.token))!
      await at.sessions.get(used.session.secret)
      at.clock.advance(GRACE + 1)
      expect(await at.sessions.redeemRememberToken(second.token)).toBeNull()
      expect(at.thefts()).toHaveLength(1)
      for (const { session } of [thief, used]) expect(await at.sessions.get(session.secret)).toBeNull()
      expect(await at.sessions.redeemRememberToken(used.token)).toBeNull()
    }
  })
})
