// Each engine under the nemesis. `npm run proof -- engines --minutes 10 redis` runs this file for longer.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CompiledWorker, compileWorker } from '../../support/compile-worker.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { ENGINES, prove, type Report } from './proof.ts'

const { COATCHECK_PROOF_MINUTES, COATCHECK_PROOF_ENGINES, COATCHECK_PROOF_SEED } = process.env
const isLong = COATCHECK_PROOF_MINUTES !== undefined
const SECONDS = isLong ? Number(COATCHECK_PROOF_MINUTES) * 60 : 4
const chosen = COATCHECK_PROOF_ENGINES?.split(',') ?? ENGINES.map(({ name }) => name)

const figures = ({ engine, seed, seconds, rounds, histories, calls, unknown, refused, looked, faults }: Report) =>
  [
    `${engine}: seed ${seed}, ${seconds.toFixed(0)} s, ${rounds} rounds, ${histories} histories, ${calls} calls,`,
    `${unknown} of unknown outcome, ${refused} refused, ${looked} configurations looked at;`,
    Object.entries(faults)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([fault, times]) => `${fault} ${times}`)
      .join(', ') || 'no faults',
  ].join(' ')

let worker: CompiledWorker
beforeAll(async () => {
  worker = await compileWorker('proof/engines/worker')
}, 120_000)
afterAll(() => worker?.remove())

for (const engine of ENGINES.filter(({ name }) => chosen.includes(name)))
  describeEngine(engine.needs, `${engine.name} against the model`, () => {
    it('explains every answer that several processes got while it failed', {
      timeout: (SECONDS + 300) * 1000,
    }, async () => {
      const seed =
        COATCHECK_PROOF_SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(COATCHECK_PROOF_SEED)
      let shown = performance.now()
      const report = await prove(engine, {
        ...{ seed, seconds: SECONDS, worker: worker.path },
        onRound(sofar) {
          if (!isLong || performance.now() - shown < 30_000) return
          shown = performance.now()
          console.log(figures(sofar))
        },
      })
      console.log(figures(report))
      for (const [fault, reason] of Object.entries(report.impossible))
        console.log(`${engine.name}: no ${fault}: ${reason}`)
      const violations = report.violations.map(({ seed, cell, text }) => `seed ${seed}, cell ${cell}: ${text}`)
      for (const violation of violations) console.log(violation)
      expect(violations.join('\n\n')).toBe('')
      expect(report.calls).toBeGreaterThan(20)
    })
  })
