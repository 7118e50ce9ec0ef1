import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import fc from 'fast-check'
import { afterAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { type OpenDatabase, openSqlite, SQLITE_DRIVERS, sqliteFile } from '../../../services/sqlite.ts'

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `the SQLite store with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    let database: OpenDatabase | undefined
    afterAll(() => {
      database?.close()
      remove()
    })

    describe.each(['bigint', 'string'] as const)('with %s user IDs', userIds => {
      const open = async () => {
        database ??= openSqlite(driver, file)
        const store = new SqliteStore(database, { userIds, table: `${userIds}_sessions` })
        await store.migrate()
        return store
      }
      const corrupt = async (_: unknown, key: string) => {
        database?.exec(`UPDATE ${userIds}_sessions SET version = -1 WHERE id = '${key}'`)
      }
      const rename = async (from: string, to: string) => database?.exec(`ALTER TABLE ${from} RENAME TO ${to}`)
      const outage = async () => {
        await rename(`${userIds}_sessions`, 'elsewhere')
        return () => rename('elsewhere', `${userIds}_sessions`)
      }
      testStore(it, open, undefined, { textUserIds: userIds === 'string', corrupt, outage, runs: 25 })
      it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
    })
  })
