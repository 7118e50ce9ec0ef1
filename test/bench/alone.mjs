// @ts-check
// coatcheck beside by hand, and nobody else: more requests before and more rounds than the table of all has time for, so
// that neither code which V8 has not compiled yet nor a busy machine decides. Then what lies between the two, on memory.
import { contest } from './contest.mjs'
import { PARTS, TABLES } from './stores.mjs'

const OWN = ['by hand', 'coatcheck']

/** @type {Omit<Parameters<typeof contest>[1], 'rounds' | 'operations'>} */
const PLAN = {
  isQuick: false,
  seconds: () => 8,
  leastRounds: 5,
  warmUp: {
    profile: { requests: 30_720, seconds: 8 },
    one: { requests: 12_288, seconds: 6 },
    anonymous: { requests: 12_288, seconds: 3 },
  },
  sessions: 0,
}

export async function benchAlone() {
  for (const shown of Object.values(TABLES)) {
    const missing = shown.missing()
    if (missing !== null) {
      console.log(`\n### ${shown.title}, alone\n\nLeft out: ${missing}.`)
      continue
    }
    const rows = shown.rows.filter(({ label }) => OWN.includes(label))
    const plan = { ...PLAN, operations: ['profile', 'one', 'anonymous'], rounds: 60 }
    await contest({ ...shown, title: `${shown.title}, alone`, rows, absent: [] }, plan)
  }
  const parts = { .../** @type {import('./stores.mjs').Table} */ (TABLES.memory), rows: PARTS, absent: [] }
  await contest({ ...parts, title: 'What a request is made of' }, { ...PLAN, operations: ['profile'], rounds: 200 })
}
