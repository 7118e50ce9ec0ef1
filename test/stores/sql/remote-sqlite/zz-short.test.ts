// The statements and batches of the stores for SQLite on a network, asked of SQLite in this process: @libsql/client sends
// them to a file here, one after the other, and everything but the network is the same.
import { createClient } from '@libsql/client'
import { type LibsqlClient, type LibsqlQuery, LibsqlStore } from 'coatcheck/stores/sql'
import { modelTest, testStore } from 'coatcheck/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { sqliteFile } from '../../../services/sqlite.ts'

const quick = (name: string, run: () => Promise<void>) => {
  if (!/1,200|5,000|100 parallel|cursor as often|lets a walk|visitors at once|as others come/.test(name)) it(name, run)
}
describeEngine('libsql', 'a SQLite database on a network, in this process', () => {
  const { file, remove } = sqliteFile()
  const client = createClient({ url: `file:${file}` })
  const remote = {
    protocol: 'http',
    execute: (query: LibsqlQuery) => client.execute(query),
    batch: (queries: LibsqlQuery[], mode: 'write') => client.batch(queries, mode),
    executeMultiple: (sql: string) => client.executeMultiple(sql),
  } satisfies LibsqlClient & Record<string, unknown>
  beforeAll(() => client.executeMultiple('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF'))
  afterAll(() => {
    client.close()
    remove()
  })
  describe.each(['text'] as const)('with %s user IDs', userIds => {
    const table = `${userIds}_sessions`
    const open = async () => {
      const store = new LibsqlStore(remote, { userIds, table })
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      await client.execute(`UPDATE ${table} SET version = -1 WHERE id = '${key}'`)
    }
    const outage = async () => {
      await client.execute(`ALTER TABLE ${table} RENAME TO elsewhere`)
      return () => client.execute(`ALTER TABLE elsewhere RENAME TO ${table}`)
    }
    const { runs, rounds } = { runs: 3, rounds: 2 }
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs }))
    testStore(quick as never, open, undefined, { textUserIds: userIds === 'text', corrupt, outage, runs, rounds })
  })
})
