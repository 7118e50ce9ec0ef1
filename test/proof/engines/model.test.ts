import { ReferenceStore } from 'coatcheck/custom-store/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { make } from './client.ts'
import { type Call, EMPTY, keyOf, livingOf, type State, ways } from './model.ts'
import { Client, cellOf } from './schedule.ts'

/** Random calls about one small world, as the clients of a history make them; the answers are the model's. */
const schedule = fc.record({ seed: fc.integer(), clients: fc.integer({ min: 1, max: 3 }), length: fc.nat(60) })

interface Step {
  readonly call: Call
  readonly before: State
  readonly answer: unknown
}

/** One call after the other. */
function run({ seed, clients, length }: { seed: number; clients: number; length: number }): Step[] {
  const cell = cellOf(seed, 0)
  const steps: Step[] = []
  const clock = (i: number) => () => 1_767_225_600_000 + i * 60_000 + steps.length * 200
  const all = Array.from({ length: clients }, (_, i) => new Client(cell, `c${i}`, {}, clock(i)))
  let state = EMPTY
  for (let i = 0; i < length; i++) {
    const client = all[(seed + i * i) % clients] ?? all[0]!
    const call = client.call()
    const { after, answer } = stepOf(state, call)
    steps.push({ call, before: state, answer })
    state = after
    client.heard(call, answer)
  }
  return steps
}

function stepOf(state: State, call: Call): { after: State; answer: unknown } {
  if (call.verb === 'listUser') return { after: state, answer: livingOf(state, call.userId, call.kind, call.now) }
  const [way] = ways(state, call)
  if (way === undefined || !('answer' in way)) throw new Error('a call of the contract is one step')
  return { after: way.state, answer: way.answer }
}

const always = (check: (steps: readonly Step[]) => void | Promise<void>) =>
  fc.assert(
    fc.asyncProperty(schedule, async story => check(run(story))),
    { numRuns: 200 },
  )

describe('the model of the contract', { timeout: 180_000 }, () => {
  it('answers as the reference store of the suite does', () =>
    always(async steps => {
      const store = new ReferenceStore()
      for (const { call, answer } of steps) {
        const told = await make(store, call, Number.POSITIVE_INFINITY)
        if (call.verb === 'listUser') expect(told).toEqual(answer)
        // Of an expired record the model leaves open whether a store still has it.
        else if (call.verb === 'delete') expect(typeof answer).toBe(typeof told)
        else expect(told, JSON.stringify(call)).toEqual(answer)
      }
    }))

  it('changes no state that was given to it', () =>
    always(steps => {
      for (const { call, before } of steps) {
        const name = keyOf(before)
        if (call.verb !== 'listUser') ways(before, call, { resends: true, crosses: () => true, endsUserInSteps: true })
        expect(keyOf(before)).toBe(name)
      }
    }))
})
