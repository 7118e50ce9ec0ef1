// What a user's own message costs beside what JSON.stringify takes for the same text: processors of one process, so that a
// busy machine slows both.
import { stringify } from 'coatcheck'
import { expect, it } from 'vitest'

const CALLS = 20_000
const ROUNDS = 7
/** A writer that went through JSON.stringify with a replacer took fifty times as long; this one takes three. */
const MOST = 10

/** Milliseconds of the processor for so many calls, in the best of some rounds. */
function cost(write: (value: unknown) => unknown, value: unknown): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = process.cpuUsage()
    for (let call = 0; call < CALLS; call += 1) write(value)
    const { user, system } = process.cpuUsage(begun)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}

it('stringify writes a user with a bigint for an ID in a few times what JSON.stringify takes without one', () => {
  const answer = (id: unknown) => ({ user: { id, name: 'ada' }, cart: ['coat', 'hat'], seen: 3, admin: false })
  const ratio = cost(stringify, answer(2n ** 64n - 1n)) / cost(JSON.stringify, answer('18446744073709551615'))
  expect(ratio).toBeLessThan(MOST)
})
