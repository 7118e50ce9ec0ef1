import { ReferenceStore } from 'coatcheck/custom-store/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { make } from './client.ts'
import { type Call, EMPTY, keyOf, livingOf, type Rules, type Stage, type State, ways } from './model.ts'
import { Client, cellOf } from './schedule.ts'

/** Random calls about one small world, as the clients of a history make them; the answers are the model's. */
const schedule = fc.record({ seed: fc.integer(), clients: fc.integer({ min: 1, max: 3 }), length: fc.nat(60) })

interface Step {
  readonly call: Call
  readonly before: State
  readonly after: State
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
    const step = { call, before: state, ...stepOf(state, call) }
    state = step.after
    steps.push(step)
    client.heard(call, step.answer)
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

  it('ends, across two slots, in the new session, in the old one, or in none: an answered one never in both', () =>
    always(steps => {
      for (const { call, before } of steps) {
        if (call.verb !== 'replace' || before.records.has(call.record.key)) continue
        const seen = [...reached(before, call, { crosses: () => true })]
        expect(seen.length).toBeGreaterThan(0)
        for (const { state } of seen)
          expect(state.records.has(call.oldKey) && state.records.has(call.record.key)).toBe(false)
      }
    }))

  it('ends the same in several steps of a deleteUser as in one, where no other call comes between', () =>
    always(steps => {
      for (const { call, before, after, answer } of steps) {
        if (call.verb !== 'deleteUser') continue
        const seen = [...reached(before, call, { endsUserInSteps: true })]
        expect(seen.length).toBeGreaterThan(0)
        for (const way of seen) {
          expect(way.answer).toBe(answer)
          expect(keyOf(way.state)).toBe(keyOf(after))
        }
      }
    }))
})

/** Every way in which a call of several steps is answered that no other call disturbs. */
function* reached(state: State, call: Stage, rules: Rules): Generator<{ state: State; answer: unknown }> {
  for (const way of ways(state, call, rules))
    if ('answer' in way) yield way
    else yield* reached(way.state, way.next, rules)
}
