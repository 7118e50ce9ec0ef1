// The end of a remember-me series where the store fails on the way, while another process began a session with its token:
// what ends it rejects, and the same call, repeated anywhere, finishes it.

import { SessionManager } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { type Node, setUpSeries as setUp, thefts, visit, WAYS } from './ending-series.ts'
import { times } from '../support/remembered.ts'
import { MINUTE } from '../support/test-clock.ts'

describe.each(Object.entries(WAYS))('%s', (_, { options, before, end }) => {
  it('leaves nothing of the series, wherever the store fails before it is repeated', async () => {
    let failures = 0
    for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
      for (const place of times(12)) {
        const at = await setUp(options)
        await before?.(at)
        const failure = await end(at.failing(place, fault), at).catch((error: unknown) => error)
        if (failure instanceof Error) {
          expect(failure).toMatchObject({ code: 'ERR_SESSION_STORE' })
          failures += 1
          await end(at.node(), at)
        }
        expect(await at.left(), `failing at call ${place}`).toEqual([])
        for (const { session, token } of [at.first, at.begun]) {
          expect(await at.node().get(session.secret)).toBeNull()
          expect(await at.node().redeemRememberToken(token!)).toBeNull()
        }
      }
    expect(failures).toBeGreaterThan(9)
  })

  it('nor where it fails twice', async () => {
    for (const first of times(9))
      for (const second of times(9)) {
        const at = await setUp(options)
        await before?.(at)
        for (const place of [first, second]) await end(at.failing(place, faults.rejectsAfter), at).catch(() => {})
        await end(at.node(), at)
        expect(await at.left(), `failing at call ${first}, then ${second}`).toEqual([])
      }
  })
})

it('a memory store that is full of users lets each log out who has a remember token', async () => {
  const store = new MemoryStore({ maxRecords: 10 })
  const sessions = new SessionManager({ store, rememberFor: '30d', sweepInterval: false })
  const tokens: string[] = []
  for (const id of times(5))
    tokens.push(await sessions.issueRememberToken(await sessions.create({ user: { id, name: '' } })))
  await expect(sessions.create({ user: { id: 9, name: '' } })).rejects.toMatchObject({ outcome: 'not-applied' })
  for (const token of tokens) await sessions.revokeRememberToken(token)
  for (const token of tokens) expect(await sessions.redeemRememberToken(token)).toBeNull()
})

it('a token that comes after an end that failed begins a session, which the repeated call ends', async () => {
  const at = await setUp()
  // It reads the series, and fails to list the sessions.
  await expect(at.failing(1, faults.rejects).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
    operation: 'listUser',
    outcome: 'not-applied',
  })
  const again = (await at.node().redeemRememberToken(at.begun.token!))!
  await at.node().revokeRememberToken(at.begun.token!)
  expect(await at.node().get(again.session.secret)).toBeNull()
  expect(await at.left()).toEqual([])
})

it('a theft is told, once unless the store fails in the call that deletes the series', async () => {
  for (const onTheft of ['end-device', 'invalidate-user'])
    for (const fault of [faults.rejects, faults.rejectsAfter])
      for (const place of times(10)) {
        const at = await setUp({ onTheft })
        await visit(at)
        const steal = (sessions: Node) => sessions.redeemRememberToken(at.first.token!)
        const failure = await steal(at.failing(place, fault)).catch((error: unknown) => error)
        const isDeleting = (failure as { operation?: string } | null)?.operation === 'delete'
        await Promise.all(times(3).map(() => steal(at.node())))
        const told = thefts(at.events).length
        expect(isDeleting ? [1, 2] : [1], `${onTheft} ${place}`).toContain(told)
        expect(await at.left()).toEqual([])
      }
})

describe('a token whose answer was lost, and that is presented again after the grace', () => {
  /** The session that the lost answer named was never used. */
  const lose = async () => {
    const at = await setUp()
    at.clock.advance(MINUTE + CLOCK_TOLERANCE + 1)
    return at
  }

  it('ends the session that the browser never got, wherever the store fails, by the next rotation at the latest', async () => {
    let failures = 0
    for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
      for (const place of times(8)) {
        const at = await lose()
        const failed = await at
          .failing(place, fault)
          .redeemRememberToken(at.first.token!)
          .then(
            () => false,
            () => true,
          )
        failures += Number(failed)
        const answer = (await at.node().redeemRememberToken(at.first.token!))!
        expect(await at.node().get(answer.session.secret), `failing at call ${place}`).not.toBeNull()
        const isLeft = (await at.node().get(at.begun.session.secret, { touch: false })) !== null
        // Written down, and failed before it could end that session.
        if (isLeft) expect([1, 2]).toContain(place)
        // Nor does a parallel request end what goes on under a new ID.
        const renewed = (await at.node().regenerate(answer.session))!
        await at.node().redeemRememberToken(at.first.token!)
        expect(await at.node().get(renewed.secret)).not.toBeNull()
        expect(await at.node().redeemRememberToken(answer.token)).not.toBeNull()
        expect(await at.node().get(at.begun.session.secret, { touch: false }), `failing at call ${place}`).toBeNull()
        expect(thefts(at.events)).toEqual([])
      }
    expect(failures).toBeGreaterThan(9)
  })
})
