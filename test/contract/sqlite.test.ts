import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import fc from 'fast-check'
import { afterAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `the SQLite store with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    let database: OpenDatabase | undefined
    afterAll(() => {
      database?.close()
      remove()
    })

    const open = async () => {
      database ??= openSqlite(driver, file)
      const store = new SqliteStore(database)
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      database?.exec(`UPDATE coatcheck_sessions SET version = -1 WHERE id = '${key}'`)
    }
    const rename = async (from: string, to: string) => database?.exec(`ALTER TABLE ${from} RENAME TO ${to}`)
    const outage = async () => {
      await rename('coatcheck_sessions', 'elsewhere')
      return () => rename('elsewhere', 'coatcheck_sessions')
    }
    testStore(it, open, undefined, { corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 25 }))
  })
