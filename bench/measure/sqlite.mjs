// @ts-check
// get of the manager, and read of the store alone, on SQLite beside the bare prepared statement on the same row.
import { coatcheck } from '../servers/serve.mjs'
import { openSqlite } from '../sqlite.mjs'

const ROUNDS = 15
const SESSIONS = 10_000
const GETS = 15_000

const [driver = '', file = ''] = process.argv.slice(2)
const { SessionManager } = await coatcheck('index.js')
const { SqliteStore } = await coatcheck('stores/sqlite.js')
const database = await openSqlite(driver, file)
const store = new SqliteStore(database)
await store.migrate()
const sessions = new SessionManager({ store, sweepInterval: false })
/** @type {string[]} */
const ids = []
/** @type {string[]} */
const keys = []
for (let user = 1; user <= SESSIONS; user += 1) {
  const session = await sessions.create({ user: { id: user, name: `user ${user}` } })
  ids.push(session.secret)
  keys.push(session.key)
}
const bare = database.prepare('SELECT * FROM coatcheck_sessions WHERE id = ?')
// As fast as the driver gives a row: arrays where it has them, which is also what the store asks for.
bare.raw?.(true)

const now = Date.now()
const work = {
  bare: (/** @type {number} */ i) => bare.get(keys[i % SESSIONS]),
  read: (/** @type {number} */ i) => store.read(keys[i % SESSIONS], { now }),
  get: (/** @type {number} */ i) => sessions.get(ids[i % SESSIONS]),
}
/** @type {Record<string, number[]>} */
const micros = Object.fromEntries(Object.keys(work).map(name => [name, []]))
for (let round = -3; round < ROUNDS; round += 1)
  for (const [name, run] of Object.entries(work)) {
    const before = process.cpuUsage()
    for (let i = 0; i < GETS; i += 1) if (!(await run(i))) throw new Error(`${name} found nothing`)
    const { user, system } = process.cpuUsage(before)
    if (round >= 0) micros[name]?.push((user + system) / GETS)
  }
process.send?.(micros)
process.exit(0)
