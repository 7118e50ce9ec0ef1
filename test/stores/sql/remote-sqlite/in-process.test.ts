// The statements and batches of the stores for SQLite on a network, asked of SQLite in this process: @libsql/client sends
// them to a file here, one after the other, and everything but the network is the same. LibsqlStore refuses such a client
// for what it leaves open at a lock; nobody else has this file.
import { createClient } from '@libsql/client'
import { type LibsqlClient, type LibsqlQuery, LibsqlStore } from 'coatcheck/stores/sql'
import { modelTest, testStore } from 'coatcheck/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { sqliteFile } from '../../../services/sqlite.ts'

describeEngine('libsql', 'a SQLite database on a network, in this process', () => {
  const { file, remove } = sqliteFile()
  const client = createClient({ url: `file:${file}` })
  const remote = {
    protocol: 'http',
    execute: (query: LibsqlQuery) => client.execute(query),
    batch: (queries: LibsqlQuery[], mode: 'write') => client.batch(queries, mode),
    executeMultiple: (sql: string) => client.executeMultiple(sql),
  } satisfies LibsqlClient & Record<string, unknown>
  beforeAll(() => client.execute('PRAGMA journal_mode = WAL'))
  afterAll(() => {
    client.close()
    remove()
  })
  describe.each(['u64', 'text'] as const)('with %s user IDs', userIds => {
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
    const { runs, rounds } = userIds === 'u64' ? { runs: 2, rounds: 1 } : { runs: 10, rounds: 3 }
    testStore(it, open, undefined, { textUserIds: userIds === 'text', corrupt, outage, runs, rounds })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs }))
  })
})
