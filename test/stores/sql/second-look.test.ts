// A write that finds nothing looks once more, to tell what became of the record. Between the two another node may make it.

import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { type MariadbServer, startMariadb } from '../../services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../../services/postgres.ts'
import { soon } from '../../support/deadlines.ts'
import { NOW, newWriteId, record } from '../../support/sql/records.ts'

const call = () => ({ now: NOW, deadline: soon() })

interface Nodes {
  readonly other: Store
  /** A store that lets the other node act after its next UPDATE. */
  readonly store: Store
  meanwhile(act: () => Promise<unknown>): void
}

/** Lets `act` come once after an UPDATE that a connection was asked for. */
function acting() {
  let next: (() => Promise<unknown>) | null = null
  return {
    meanwhile(act: () => Promise<unknown>) {
      next = act
    },
    async after(text: string): Promise<void> {
      const act = next
      if (act === null || !/^\s*UPDATE/.test(text)) return
      next = null
      await act()
    },
  }
}

function cases(open: () => Nodes) {
  const made = (changes: Partial<SessionRecord> = {}) =>
    record({ seenAt: NOW - 1000, expiresAt: NOW + 1000, ...changes })

  it('touches what was made after it had found nothing', async () => {
    const { other, store, meanwhile } = open()
    const one = made()
    meanwhile(() => other.create(one, {}, call()))
    expect(await store.touch(one.key, NOW, NOW + 9000, call())).toBe('touched')
    expect(await other.read(one.key, call())).toMatchObject({ seenAt: NOW, expiresAt: NOW + 9000 })
  })
  it('updates what was made after it had found nothing', async () => {
    const { other, store, meanwhile } = open()
    const one = made()
    meanwhile(() => other.create(one, {}, call()))
    const change = { data: '"new"', seenAt: NOW, expiresAt: NOW + 9000, writeId: newWriteId() }
    expect(await store.update(one.key, 1, change, call())).toBe('updated')
    expect(await other.read(one.key, call())).toMatchObject({ version: 2, data: '"new"' })
  })
  it('says that a record of another version is in the way, and that one is gone', async () => {
    const { other, store, meanwhile } = open()
    const one = made()
    const change = { data: '"new"', seenAt: NOW, expiresAt: NOW + 9000, writeId: newWriteId() }
    meanwhile(() => other.create(one, {}, call()))
    expect(await store.update(one.key, 7, change, call())).toBe('conflict')
    meanwhile(() => other.delete(one.key, call()))
    expect(await store.update(one.key, 7, change, call())).toBe('gone')
    expect(await store.touch(one.key, NOW, NOW + 9000, call())).toBe('gone')
  })
  it('takes a touch for one that was made before where the record has all that it would change', async () => {
    const { other, store } = open()
    const one = made()
    await other.create(one, {}, call())
    for (let times = 0; times < 2; times++) expect(await store.touch(one.key, NOW, NOW + 9000, call())).toBe('touched')
    const longest = one.absoluteExpiresAt + 9000
    for (let times = 0; times < 2; times++) expect(await store.touch(one.key, NOW, longest, call())).toBe('touched')
  })
}

describeEngine('postgresql', 'a second look on PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
    await new PostgresStore(server.pool()).migrate()
  })
  afterAll(() => server?.stop())

  cases(() => {
    const { meanwhile, after } = acting()
    const pool = server.pool({ max: 1 })
    pool.on('connect', client => {
      const query = client.query.bind(client) as (asked: { text: string }) => Promise<unknown>
      const withAct = async (asked: { text: string }) => {
        const answer = await query(asked)
        await after(asked.text)
        return answer
      }
      client.query = withAct as typeof client.query
    })
    return { other: new PostgresStore(server.pool()), store: new PostgresStore(pool), meanwhile }
  })
})

describeEngine('mariadb', 'a second look on MariaDB', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
    await new MysqlStore(server.pool()).migrate()
  })
  afterAll(() => server?.stop())

  cases(() => {
    const { meanwhile, after } = acting()
    const pool = server.pool({ connectionLimit: 1 })
    const wrapped = {
      async getConnection() {
        const connection = await pool.getConnection()
        const execute = connection.execute.bind(connection) as (...asked: unknown[]) => Promise<unknown>
        const withAct = async (...asked: [string | { sql: string }]) => {
          const answer = await execute(...asked)
          await after(typeof asked[0] === 'string' ? asked[0] : asked[0].sql)
          return answer
        }
        return Object.assign(Object.create(connection), {
          execute: withAct,
          query: connection.query.bind(connection),
          release: () => connection.release(),
          destroy: () => connection.destroy(),
        })
      },
    }
    return { other: new MysqlStore(server.pool()), store: new MysqlStore(wrapped as never), meanwhile }
  })
})
