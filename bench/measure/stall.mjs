// @ts-check
// The longest turn of the event loop, in processor time, while records are added one by one, expire together and are removed in steps, in a
// MemoryStore or in a bare Map with the same entries.
import { createHash, randomBytes } from 'node:crypto'
import { coatcheck } from '../servers/serve.mjs'

const [who = '', count = ''] = process.argv.slice(2)
const COUNT = Number(count)
const STEP = 1000
const { MemoryStore } = await coatcheck('stores/memory.js')
const now = Date.now()
const later = now + 86_400_000

const record = (/** @type {number} */ user) => ({
  key: `abc${createHash('sha256').update(randomBytes(32)).digest('base64url')}`,
  kind: 'session',
  parent: null,
  userId: String(user),
  userName: `user ${user}`,
  passwordVersion: null,
  data: '{}',
  version: 1,
  writeId: randomBytes(12).toString('base64url'),
  createdAt: now,
  seenAt: now,
  expiresAt: now + 1_800_000,
  absoluteExpiresAt: now + 43_200_000,
})

/** @type {Record<string, () => { add(entry: any): unknown, removeSome(): number | Promise<number> }>} */
const contestants = {
  coatcheck() {
    const store = new MemoryStore({ maxRecords: 2 * COUNT })
    return {
      add: entry => store.create(entry, { now }),
      removeSome: () => store.sweep(STEP, { now: later }),
    }
  },
  'a bare Map'() {
    const map = new Map()
    return {
      add: entry => map.set(entry.key, { ...entry }),
      removeSome: () => {
        let removed = 0
        for (const [key, { expiresAt }] of map) {
          if (removed === STEP) break
          if (expiresAt >= later) continue
          map.delete(key)
          removed += 1
        }
        return removed
      },
    }
  },
}

const open = contestants[who]
if (!open) throw new Error(`nobody is called ${who}`)
const turn = () => new Promise(resolve => setImmediate(resolve))
/** Processor time of this process, its collector's threads included: other processes do not lengthen it. In ms. */
const cpu = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
/** The longest of the steps until one answers 0, each in a turn of its own, in ms. @param {() => unknown} step */
async function longest(step) {
  for (let most = 0; ; ) {
    await turn()
    const begun = cpu()
    const isLast = (await step()) === 0
    most = Math.max(most, cpu() - begun)
    if (isLast) return most
  }
}

/** Threads of the collector and the compiler go on for a while. */
const rest = async () => {
  globalThis.gc?.()
  await new Promise(resolve => setTimeout(resolve, 200))
}
/** @param {number} count */
async function round(count) {
  const contestant = open()
  const entries = Array.from({ length: count }, (_, user) => record(user))
  await rest()
  let left = count
  const adding = await longest(() => (left === 0 ? 0 : contestant.add(entries[--left])))
  entries.length = 0
  await rest()
  return { adding, removing: await longest(() => contestant.removeSome()) }
}
// The first ones run code that is not compiled yet.
for (let times = 0; times < 5; times += 1) await round(2 * STEP)
process.send?.(await round(COUNT))
process.exit(0)
