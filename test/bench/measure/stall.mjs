// @ts-check
// A million sessions expire at one instant. The longest time between two turns of the event loop while they are swept
// and a visitor keeps coming: by the clock, and in processor time of this process (its collector's threads included),
// which other processes do not lengthen.
import { coatcheck } from '../servers/serve.mjs'

const COUNT = Number(process.argv[2])
const { SessionManager } = await coatcheck('index.js')
const { MemoryStore } = await coatcheck('stores/memory.js')
let now = Date.now()
const sessions = new SessionManager({
  store: new MemoryStore({ maxRecords: 2 * COUNT }),
  sweepInterval: false,
  now: () => now,
})
for (let user = 1; user <= COUNT; user += 1) await sessions.create({ user: { id: user, name: `user ${user}` } })
globalThis.gc?.()
now += 36 * 3_600_000
const visitor = await sessions.create({ user: { id: 0, name: 'visitor' } })

const turn = () => new Promise(resolve => setImmediate(resolve))
const cpuNow = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
/** @type {number[]} */
const gaps = []
/** @type {number[]} */
const turns = []
let isSweeping = true
const swept = sessions.sweep().finally(() => {
  isSweeping = false
})
let last = performance.now()
let lastCpu = cpuNow()
const start = last
while (isSweeping) {
  await turn()
  const at = performance.now()
  const cpu = cpuNow()
  gaps.push(at - last)
  turns.push(cpu - lastCpu)
  last = at
  lastCpu = cpu
  if ((await sessions.get(visitor.secret)) === null) throw new Error('the visitor was swept')
}
gaps.sort((a, b) => b - a)
turns.sort((a, b) => b - a)
process.send?.({
  longest: gaps[0],
  longestCpu: turns[0],
  p999: gaps[Math.floor(gaps.length / 1000)],
  seconds: (last - start) / 1000,
  swept: await swept,
})
process.exit(0)
