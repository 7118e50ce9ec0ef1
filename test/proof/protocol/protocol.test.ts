// The protocol of revocation as models that Spin searches: every state that a few calls at once can come to. Each
// invariant has the number of its guarantee in its name; a comment in the model says what it stands for.
// `COATCHECK_PROOF=long` lets more calls go on at once.
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { search } from './spin.ts'

interface Model {
  readonly name: string
  /** How many calls go on at once: in each run of the tests, and in the long form. */
  readonly calls: readonly [short: number, long: number]
  /** The stores whose steps the model has. */
  readonly forms: readonly string[]
  /** Statements that no run can execute, and why. */
  readonly unreached?: readonly string[]
  /** Mistakes, each with what it breaks, and the form that it is a mistake of. */
  readonly mistakes: readonly (readonly [mistake: string, invariant: string, form?: string])[]
}

const MODELS: readonly Model[] = [
  {
    name: 'session',
    calls: [3, 4],
    forms: ['STORE_REDIS', 'STORE_SQL'],
    // A logout that is repeated dies no second time: one answer is lost.
    unreached: [':: atomic { lost > 0 -> lost--; died = true }'],
    mistakes: [
      ['NO_FORWARD', 'G1_destroyed_stays_destroyed'],
      ['FORWARD_NOT_FOLLOWED', 'G1_destroyed_stays_destroyed'],
      ['UPDATE_REVIVES', 'G1_destroyed_stays_destroyed'],
      ['FORWARDS_FIRST', 'G1_destroyed_stays_destroyed', 'STORE_SQL'],
      ['REPLACE_WITHOUT_VERSION', 'G2_no_lost_update'],
      ['OLD_STAYS', 'G4_one_successor_or_none'],
      ['LOG_IN_LEAVES_FORWARD', 'G4_the_old_id_is_dead'],
      ['NO_WRITE_ID', 'G7_a_lost_answer_is_not_a_log_out'],
    ],
  },
  {
    name: 'user',
    calls: [4, 5],
    forms: ['STORE_REDIS', 'STORE_SQL'],
    mistakes: [
      ['NO_FLOOR', 'G3_no_stale_log_in'],
      ['DELETE_BEFORE_FLOOR', 'G3_no_stale_log_in'],
      ['DELETE_BEFORE_FLOOR', 'G3_no_stale_log_in', 'STORE_SQL'],
      ['INDEX_READ_ONCE', 'G3_log_out_everywhere_is_complete'],
      ['SERIES_SPARED', 'G3_log_out_everywhere_is_complete'],
      ['EXCEPT_NOT_FOLLOWED', 'G3_the_excepted_session_goes_on'],
      ['NO_PARENT_CHECK', 'G3_what_a_series_began_ends_with_it'],
      ['ONE_LOOK', 'G3_what_a_series_began_ends_with_it'],
      ['LIST_WITHOUT_FORWARDS', 'G3_what_a_series_began_ends_with_it'],
    ],
  },
  {
    name: 'cluster',
    calls: [3, 4],
    forms: ['STORE_REDIS'],
    mistakes: [
      ['LEAVE_WITHOUT_VERSION', 'G2_no_lost_update'],
      ['BEGUN_ANEW', 'G3_log_out_everywhere_is_complete'],
      ['FLOOR_NOT_ASKED', 'G3_no_stale_log_in'],
      ['OLD_STAYS', 'G4_never_the_old_and_the_new'],
      ['MARK_WITHOUT_ATTEMPT', 'G4_one_successor_or_none'],
      ['ABSENT_STAYS', 'G4_one_successor_or_none'],
      ['NOT_UNDONE', 'G4_a_refused_log_in_leaves_nothing'],
      ['NO_MARK', 'G4_gone_means_that_another_ended_it'],
      ['OLD_FIRST', 'G7_a_refused_log_in_ends_nothing'],
    ],
  },
  {
    name: 'locks',
    calls: [5, 5],
    forms: ['STORE_SQL'],
    mistakes: [
      ['DELETE_IN_THE_LOCKING_STATEMENT', 'G3_log_out_everywhere_is_complete'],
      ['USER_NOT_LOCKED', 'G3_log_out_everywhere_is_complete'],
      ['FLOOR_FROM_SNAPSHOT', 'G3_no_stale_log_in'],
      ['PARENT_NOT_LOCKED', 'G3_what_a_series_began_ends_with_it'],
      ['PARENT_BY_KEY_SHARE', 'G3_what_a_series_began_ends_with_it'],
    ],
  },
]

const isLong = process.env.COATCHECK_PROOF === 'long'
const figures: string[] = []

describeEngine('spin', 'the protocol of revocation', () => {
  afterAll(() => console.log(`\nstates of the protocol that were searched, all of them:\n${figures.join('\n')}\n`))

  for (const { name, calls, forms, unreached = [], mistakes } of MODELS)
    describe(`${name}.pml`, () => {
      it.each(forms)('keeps every invariant in every state, with %s', { timeout: 3_600_000 }, async form => {
        const atOnce = calls[isLong ? 1 : 0]
        const found = await search(name, [form, `CALLS=${atOnce}`], '-O2')
        expect(found.violated).toBe(null)
        expect(found.isComplete).toBe(true)
        // Every statement runs, so every scene (SCENE) is met: what an invariant speaks of does happen.
        expect(found.unreached.filter(statement => !unreached.includes(statement))).toEqual([])
        figures.push(`${name}.pml, ${form}, ${atOnce} calls at once: ${found.states} states`)
      })

      for (const [mistake, invariant, form = forms[0]!] of mistakes)
        it(`shows what breaks with the mistake ${mistake} in ${form}: ${invariant}`, { timeout: 300_000 }, async () => {
          const found = await search(name, [form, `CALLS=${calls[0]}`, mistake], '-O0')
          expect(found.violated).toBe(invariant)
        })

      it('has a comment with its guarantee beside each invariant, and a mistake that breaks it', () => {
        const text = readFileSync(new URL(`${name}.pml`, import.meta.url), 'utf8')
        const invariants = [...text.matchAll(/^ *assert\((\w+)\)/gm)].map(match => match[1]!)
        expect(invariants.length).toBeGreaterThan(2)
        for (const invariant of invariants) {
          expect(text).toMatch(new RegExp(`/\\* ${invariant.slice(0, 2)}: [^/]*\\*/\\n *${invariant} = `))
          expect(mistakes.map(([, broken]) => broken)).toContain(invariant)
        }
      })
    })
})
