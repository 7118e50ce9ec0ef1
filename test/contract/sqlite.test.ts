import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import fc from 'fast-check'
import { afterAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'
import { damages } from '../support/sql/backend.ts'

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
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 10 }))
    testStore(it, open, undefined, { ...damages(sql => databases?.[0].exec(sql)), runs: 15 })
  })
