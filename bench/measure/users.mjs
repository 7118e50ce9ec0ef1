// @ts-check
// What list and invalidateUser cost in memory, beside few and beside many others. Both in one process: V8 compiles the same
// calls in two processes at two times, and in two ways.
import { coatcheck } from '../servers/serve.mjs'
import { cycleUser, userCost, userTable } from '../user-costs.mjs'

const [few = 0, many = 0, cycles = 0] = process.argv.slice(2).map(Number)
const { SessionManager } = await coatcheck('index.js')
const { MemoryStore } = await coatcheck('stores/memory.js')
const cpu = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}
/** @param {number} others @returns {Promise<import('../user-costs.mjs').Asked>} */
async function place(others) {
  const sessions = new SessionManager({
    store: new MemoryStore({ maxRecords: 2 * others + 1_000_000 }),
    sweepInterval: false,
  })
  for (let user = 1; user <= others; user += 1) await sessions.create({ user: { id: user, name: `user ${user}` } })
  return {
    cost: (shape, firstUser, isOneUser) => userCost({ sessions, cpu }, shape, firstUser, isOneUser),
    cycle: (user, count) => cycleUser(sessions, user, count),
  }
}
const places = [await place(few), await place(many)]
process.stdout.write(await userTable(places[0], places[1], 100_000_000, cycles, 8))
