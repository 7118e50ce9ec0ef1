import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import fc from 'fast-check'
import { afterAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `the SQLite store with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    let databases: [OpenDatabase, OpenDatabase] | undefined
    afterAll(() => {
      for (const database of databases ?? []) database.close()
      remove()
    })

    const open = async () => {
      databases ??= [openSqlite(driver, file), openSqlite(driver, file)]
      const stores = [new SqliteStore(databases[0]), new SqliteStore(databases[1])] as const
      await stores[0].migrate()
      return stores
    }
    const corrupt = async (_: unknown, key: string) => {
      databases?.[0].exec(`UPDATE coatcheck_sessions SET version = -1 WHERE id = '${key}'`)
    }
    const rename = async (from: string, to: string) => databases?.[0].exec(`ALTER TABLE ${from} RENAME TO ${to}`)
    const outage = async () => {
      await rename('coatcheck_sessions', 'elsewhere')
      return () => rename('elsewhere', 'coatcheck_sessions')
    }
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 10 }))
    testStore(it, open, undefined, { corrupt, outage, runs: 15 })
  })
