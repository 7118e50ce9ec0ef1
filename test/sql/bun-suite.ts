// Run by Bun: the conformance suite on bun:sqlite, and a file that another connection has locked. The last line is the count.

import { testStore } from '../../src/custom-store/testing.ts'
import { SqliteStore } from '../../stores/sql/sqlite/store.ts'

const [file = ':memory:'] = process.argv.slice(2)
const name: string = 'bun:sqlite'
const { Database } = await import(name)
const open = () => {
  const database = new Database(file)
  database.exec('PRAGMA journal_mode = WAL')
  return database
}

const tests: [name: string, test: () => Promise<void>][] = []
const database = open()
const store = new SqliteStore(database)
const beside = new SqliteStore(open())
await store.migrate()
const corrupt = async (_: unknown, key: string) => {
  database.exec(`UPDATE coatcheck_sessions SET version = 9223372036854775807 WHERE id = '${key}'`)
}
testStore(
  (name, test) => tests.push([name, test]),
  () => [store, beside],
  undefined,
  { corrupt, runs: 25 },
)

tests.push([
  'waits for a lock of another connection, and leaves nothing open when it gives up',
  async () => {
    const other = open()
    const options = { minPasswordVersionUntil: 0, passwordVersion: 0 }
    other.exec('BEGIN IMMEDIATE')
    const early = await store
      .deleteUser('ada', options, { now: 0, deadline: performance.now() + 60 })
      .catch(error => error.outcome)
    const waiting = store.deleteUser('ada', options, { now: 0, deadline: performance.now() + 5000 })
    other.exec('COMMIT')
    if (early !== 'not-applied' || (await waiting) !== 0) throw new Error(`answered ${early}, ${await waiting}`)
    other.exec('BEGIN IMMEDIATE; COMMIT')
    other.close()
  },
])

let failed = 0
for (const [name, test] of tests)
  await test().catch(error => {
    failed++
    console.log(`FAILED ${name}\n${error?.stack ?? error}`)
  })
console.log(`${tests.length - failed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
