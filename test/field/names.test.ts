// What went wrong in the field where the names of tables, and the keys of a shared database, were not kept apart.
import { SessionManager } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startRedis } from '../support/services/redis.ts'
import { openSqlite } from '../support/services/sqlite.ts'

const HOSTILE = [
  'sessions"; DROP TABLE users; --',
  'sessions`; DROP TABLE users; --',
  "sessions' OR '1'='1",
  'web".session WHERE $1=$1;--',
  'a.b',
  'a b',
  'a\0',
  'sess\u00econs',
  '1a',
  '',
  'a'.repeat(49),
  ['sessions'],
  { toString: () => 'sessions"; --' },
]

describe('regressions of the field', () => {
  it('CVE-2019-15658: a table or schema name that would leave its quotes is refused before anything is sent', async () => {
    // Neither pool connects before it is asked for something.
    const pool = new pg.Pool({ port: 1 })
    const mysqlPool = mysql.createPool({ port: 1 })
    const database = openSqlite('libsql', ':memory:')
    const opens: ((options: object) => unknown)[] = [
      options => new PostgresStore(pool, options),
      options => new MysqlStore(mysqlPool, options),
      options => new SqliteStore(database, options),
    ]
    for (const open of opens)
      for (const option of ['table', 'schema'])
        for (const name of HOSTILE)
          expect(() => open({ [option]: name }), `${option} ${JSON.stringify(name)}`).toThrow(
            new RegExp(`${option}: expected 1 to 48 letters, digits and underscores`),
          )
    database.close()
    await mysqlPool.end()
    await pool.end()
  })

  describeEngine('redis', 'in a database that the application shares', () => {
    it('CVE-2011-4136: what an application stores under names that its users choose is never read as a session', async () => {
      const server = await startRedis()
      const { client, close } = await STANDALONE['node-redis 6']!(server.url)
      const sessions = new SessionManager({ store: new RedisStore(client), sweepInterval: false })
      const session = await sessions.create({ user: { id: 42, name: 'ada' } })
      const [stored] = (await server.cli('KEYS', `*${session.key.slice(3)}`)).split('\n')
      const value = await server.cli('GET', stored!)
      expect(value).toMatch(/^s 1 /)
      const other = await sessions.create()
      await sessions.destroy(other)
      // A name that a user chose is an ID, or a key, or any text: with the value of a session under it, it is none.
      for (const name of [
        other.secret,
        other.key,
        `session:${other.key}`,
        `sess:${other.secret}`,
        `${other.key.slice(0, 3)}:${other.key}`,
      ])
        await server.cli('SET', name, value)
      expect(await sessions.get(other.secret)).toBe(null)
      // One tenant's session is none of another's, under the same ID too.
      expect(await sessions.namespace('b').get(session.secret as never)).toBe(null)
      expect((await sessions.get(session.secret))?.user?.name).toBe('ada')
      await sessions.close()
      await close()
      await server.stop()
    })
  })
})
