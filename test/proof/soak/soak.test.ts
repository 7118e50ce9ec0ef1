// Asked by `npm run proof -- soak` alone.
import { beforeAll, expect, it } from 'vitest'
import { build } from '../../support/scripts/build.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import { soak } from './soak.ts'

const MINUTES = Number(process.env.COATCHECK_SOAK_MINUTES ?? 0)
const NAMES = process.env.COATCHECK_SOAK_NAMES ?? ''

beforeAll(() => (MINUTES > 0 ? build() : undefined), 200_000)

for (const database of ['redis', 'postgresql'] as const)
  describeEngine(database, `two nodes on ${database}`, () => {
    it.runIf(MINUTES > 0 && (NAMES === '' || NAMES.split(' ').includes(database)))(
      `lose nothing and keep nothing in ${MINUTES} minutes`,
      { timeout: (MINUTES + 5) * 60_000 },
      async () => {
        const { figures, violations } = await soak(database, MINUTES * 60)
        for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure}`)
        expect(violations).toEqual([])
      },
    )
  })
