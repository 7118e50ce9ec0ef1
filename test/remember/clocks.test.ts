// Remember-me on several nodes whose clocks differ.
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { times } from '../support/manager-kit.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'
import { DAY, device, redeemed, setUpRemember as setUp, WINDOW } from './devices.ts'

describe.each([-300, -90, 30, 90, 300])('at two nodes whose clocks are %i s apart', seconds => {
  /** A device with a token and the two nodes, in either order. */
  async function* eitherWay() {
    for (const isSwapped of [false, true]) {
      const at = setUp()
      const { token } = await device(at)
      const nodes = [at.sessions, at.manager({ now: at.clock.skewed(seconds * SECOND) })] as const
      const [one, two] = isSwapped ? [nodes[1], nodes[0]] : nodes
      yield { ...at, token, one, two }
    }
  }

  it('parallel uses of a token are no theft, also where the browser comes back in between', async () => {
    for await (const { clock, token, one, two, thefts } of eitherWay()) {
      const first = (await one.redeemRememberToken(token))!
      expect((await two.redeemRememberToken(token))?.token).toBe(first.token)
      expect(await one.get(first.session.secret)).not.toBeNull()
      for (const _ of times(3)) {
        clock.advance(20 * SECOND)
        for (const node of [one, two]) {
          const again = (await node.redeemRememberToken(token))!
          expect([again.session.secret, again.token]).toEqual([first.session.secret, first.token])
          expect(await node.get(first.session.secret)).not.toBeNull()
        }
      }
      expect(thefts()).toEqual([])
    }
  })

  it('a token that is used again since its answer was lost is no theft, at any time', async () => {
    for (let wait = 0; wait <= 30 * MINUTE; wait += 100 * SECOND)
      for await (const { clock, token, one, two, thefts } of eitherWay()) {
        await one.redeemRememberToken(token)
        clock.advance(wait)
        // Two windows that open together: either answer may be the one that the browser keeps. The session of the one may
        // end for that of the other; the next token is the same.
        const answers = await Promise.all([one.redeemRememberToken(token), two.redeemRememberToken(token)])
        expect(answers[0]!.token).toBe(answers[1]!.token)
        const found = await Promise.all(answers.map(answer => two.get(answer!.session.secret)))
        expect(found.filter(session => session !== null)).not.toEqual([])
        for (const node of [two, one]) expect(await node.redeemRememberToken(token)).not.toBeNull()
        clock.advance(DAY)
        expect(await one.redeemRememberToken(answers[0]!.token)).not.toBeNull()
        expect(await two.redeemRememberToken(answers[1]!.token)).not.toBeNull()
        expect(thefts()).toEqual([])
      }
  })

  it('the use of a session counts, whichever node made it', async () => {
    for await (const { clock, store, token, one, two, thefts } of eitherWay()) {
      store.next('create', faults.rejects)
      await expect(one.redeemRememberToken(token)).rejects.toMatchObject({ operation: 'create' })
      const first = (await two.redeemRememberToken(token))!
      await one.get((await one.regenerate(first.session.secret))!)
      clock.advance(WINDOW + CLOCK_TOLERANCE + 1)
      expect(await one.redeemRememberToken(token)).toBeNull()
      expect(thefts()).toHaveLength(1)
    }
  })

  it('the use of an earlier session is not taken for one of that which was lost', async () => {
    for await (const { clock, token, one, two, thefts } of eitherWay()) {
      const first = (await two.redeemRememberToken(token))!
      clock.advance(SECOND)
      await one.redeemRememberToken(first.token)
      await one.get(first.session.secret)
      clock.advance(DAY)
      expect(await one.redeemRememberToken(first.token)).not.toBeNull()
      expect(thefts()).toEqual([])
    }
  })
})

it('the use at a node whose clock is behind is the first one: the next, elsewhere, writes nothing', async () => {
  const at = await redeemed()
  const { session } = at
  await at.manager({ now: at.clock.skewed(-5 * MINUTE) }).get(session.secret)
  at.store.reset()
  expect(await at.manager().get(session.secret)).not.toBeNull()
  expect(at.store.counts()).toEqual({ read: 1 })
})

it('a logout ends what the device had before, where a slower node holds it for live', async () => {
  const at = setUp({ idleTimeout: '30m' })
  const slower = at.manager({ now: at.clock.skewed(-4 * MINUTE) })
  const before = (await slower.redeemRememberToken((await device(at)).token))!
  at.clock.advance(28 * MINUTE)
  expect(await at.sessions.get(before.session.secret)).toBeNull()
  const { session } = (await at.sessions.redeemRememberToken(before.token))!
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
    at.clock.advance(WINDOW + 1)
    expect(await at.sessions.redeemRememberToken(second.token)).toBeNull()
    expect(at.thefts()).toHaveLength(1)
    for (const { session } of [thief, used]) expect(await at.sessions.get(session.secret)).toBeNull()
    expect(await at.sessions.redeemRememberToken(used.token)).toBeNull()
  }
})
