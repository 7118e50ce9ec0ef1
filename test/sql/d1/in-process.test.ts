// The statements and batches of D1Store, asked of SQLite in this process: the example for @libsql/client sends them to a file
// here, one after the other, and everything but the network is the same. Nobody else has this file.
import { createClient } from '@libsql/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { libsqlStore } from '../../../examples/libsql-store.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import { sqliteFile } from '../../support/services/sqlite.ts'
import { call, NOW, record } from '../records.ts'
import { partOfTheSuite } from '../suite.ts'

describeEngine('libsql', 'a SQLite database on a network, by the example for @libsql/client', () => {
  const { file, remove } = sqliteFile()
  const client = createClient({ url: `file:${file}`, intMode: 'string' })
  beforeAll(() => client.execute('PRAGMA journal_mode = WAL'))
  afterAll(() => {
    client.close()
    remove()
  })
  describe('the suite', () =>
    partOfTheSuite(() => ({ stores: libsqlStore(client), run: sql => client.execute(sql) }), { long: false }))

  it.each(['version', 'seen_at', 'expires_at', 'password_version'])(
    'takes a %s beyond all exact numbers for a damaged record, and for no outage',
    async column => {
      const store = libsqlStore(client, { table: 'exact' })
      await store.migrate()
      const [one, other] = [record(), record()]
      for (const each of [one, other]) await store.create(each, call())
      await client.execute(`UPDATE exact SET ${column} = 9007199254740993 WHERE id = '${one.key}'`)
      expect(await store.listUser('42', 'session', call())).toEqual([other])
      expect(await Promise.all([one, other].map(({ key }) => store.read(key, call())))).toEqual([
        { corrupt: expect.any(String) },
        other,
      ])
      await store.deleteUser('42', { minPasswordVersionUntil: NOW }, call())
    },
  )
})
