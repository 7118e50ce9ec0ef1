// @ts-check
// A million sessions expire at one instant. The longest time between two turns of the event loop while they are swept
// and a visitor keeps coming.
import { coatcheck } from '../servers/serve.mjs'

const COUNT = Number(process.argv[2])
const { SessionManager } = await coatcheck('index.js')
const { MemoryStore } = await coatcheck('stores/memory.js')
let now = Date.now()
const sessions = new SessionManager({
  store: new MemoryStore({ maxSessions: 2 * COUNT }),
  sweepEvery: false,
  now: () => now,
})
for (let user = 1; user <= COUNT; user += 1) await sessions.create({ user: { id: user, name: `user ${user}` } })
globalThis.gc?.()
now += 36 * 3_600_000
const visitor = await sessions.create({ user: { id: 0, name: 'visitor' } })

const turn = () => new Promise(resolve => setImmediate(resolve))
/** @type {number[]} */
const gaps = []
let isSweeping = true
const swept = sessions.sweep().finally(() => {
  isSweeping = false
})
let last = performance.now()
const start = last
while (isSweeping) {
  await turn()
  const at = performance.now()
  gaps.push(at - last)
  last = at
  if ((await sessions.get(visitor.secret)) === null) throw new Error('the visitor was swept')
}
gaps.sort((a, b) => b - a)
process.send?.({
  longest: gaps[0],
  turns: gaps.length,
  p999: gaps[Math.floor(gaps.length / 1000)],
  seconds: (last - start) / 1000,
  swept: await swept,
})
process.exit(0)
