// @ts-check
// coatcheck beside by hand, and nobody else: more requests before and more rounds than the table of all has time for, so
// that neither code which V8 has not compiled yet nor a busy machine decides. Then what lies between the two.
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

/** @param {import('./stores.mjs').Table} shown @param {Partial<typeof PLAN> & { operations: string[], rounds: number }} plan */
async function unlessMissing(shown, plan) {
  const missing = shown.missing()
  if (missing !== null) console.log(`\n### ${shown.title}\n\nLeft out: ${missing}.`)
  else await contest({ ...shown, absent: [] }, { ...PLAN, ...plan })
}

export async function benchAlone() {
  for (const shown of Object.values(TABLES)) {
    const rows = shown.rows.filter(({ label }) => OWN.includes(label))
    const plan = { operations: ['profile', 'one', 'anonymous'], rounds: 60 }
    await unlessMissing({ ...shown, title: `${shown.title}, alone`, rows }, plan)
  }
  for (const [name, rows] of Object.entries(PARTS)) {
    const shown = /** @type {import('./stores.mjs').Table} */ (TABLES[name])
    const title = `What a request is made of: ${shown.title}`
    await unlessMissing({ ...shown, title, rows }, { operations: ['profile', 'one'], rounds: 200 })
  }
}
