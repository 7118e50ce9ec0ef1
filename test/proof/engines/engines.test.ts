// Each engine under the nemesis. `npm run proof -- engines --minutes 10 redis` runs this file for longer.
import { expect, it } from 'vitest'
import { compileWorker } from '../../support/compile-worker.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { started } from '../../support/started.ts'
import { ENGINES, prove, type Report } from './proof.ts'

const { COATCHECK_ENGINES_MINUTES: MINUTES, COATCHECK_ENGINES_NAMES: NAMES, COATCHECK_ENGINES_SEED: SEED } = process.env
/** The short form is one round, of the same faults each time; the long one draws others. */
const seconds = MINUTES === undefined ? undefined : Number(MINUTES) * 60
const seed = Number(SEED || (seconds === undefined ? 7 : Math.floor(Math.random() * 2 ** 31)))
const chosen = NAMES ? NAMES.split(' ') : ENGINES.map(({ name }) => name)

const figures = ({ engine, seed, counts, faults }: Report) =>
  `${engine}, seed ${seed}: ${Object.entries({ ...counts, ...faults })
    .map(each => each.join(' '))
    .join(', ')}`

const worker = started(() => compileWorker('proof/engines/worker'))

for (const engine of ENGINES.filter(({ name }) => chosen.includes(name)))
  describeEngine(engine.needs, `${engine.name} against the model`, () => {
    it('explains every answer that several processes got while it failed', {
      timeout: ((seconds ?? 0) + 300) * 1000,
    }, async () => {
      let shown = performance.now()
      const report = await prove(engine, {
        ...{ seed, seconds, worker: worker().path },
        onRound(sofar) {
          if (seconds === undefined || performance.now() - shown < 30_000) return
          shown = performance.now()
          console.log(figures(sofar))
        },
      })
      console.log(figures(report))
      const violations = report.violations.map(({ seed, cell, text }) => `seed ${seed}, cell ${cell}: ${text}`)
      for (const violation of violations) console.log(violation)
      expect(violations.join('\n\n')).toBe('')
      expect(report.counts.histories).toBeGreaterThan(0)
    })
  })
