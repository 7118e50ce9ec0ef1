// The reads of one turn of the event loop are one SELECT: what it costs, and what goes wrong with it.
import { SessionStoreError, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { soon } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { mariadbOf, postgresOf } from './databases.ts'
import type { Locks } from './locks.ts'
import { call, change, forward, NOW, newKey, record } from './records.ts'

interface Client {
  /** A store over one connection. */
  readonly store: Store
  /** How many statements of ours the server has run. */
  count(): Promise<number>
  readonly locks: Locks
}

async function put(store: Store, count: number): Promise<SessionRecord[]> {
  const records = Array.from({ length: count }, (_, i) => record({ userId: `${i}`, data: `{"place":${i}}` }))
  for (const one of records) await store.create(one, call())
  return records
}

const readAll = (store: Store, records: readonly { key: string }[], deadline = soon()) =>
  Promise.all(records.map(({ key }) => store.read(key, { now: NOW, deadline })))

/** The errors of readers of whom none may get an answer; each has one of its own. */
async function failures(readers: readonly unknown[]): Promise<SessionStoreError[]> {
  const outcomes = await Promise.allSettled(readers)
  const errors = outcomes.map(outcome =>
    outcome.status === 'rejected' ? outcome.reason : expect.unreachable('answered'),
  )
  for (const error of errors) {
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ outcome: 'not-applied', message: 'read: the store failed' })
  }
  expect(new Set(errors).size).toBe(errors.length)
  return errors
}

function sharedReads(open: () => Client) {
  async function statements(work: () => Promise<unknown>): Promise<number> {
    const { count } = open()
    const before = await count()
    await work()
    return (await count()) - before
  }

  it('are one statement at the server, a lone one too, and equal keys are asked for once', async () => {
    const { store } = open()
    const records = await put(store, 64)
    for (const count of [64, 5, 2, 1]) {
      const some = records.slice(0, count)
      expect(await statements(async () => expect(await readAll(store, some)).toEqual(some))).toBe(1)
    }
    const [one] = records as [SessionRecord]
    expect(await statements(async () => expect(await readAll(store, [one, one, one])).toEqual([one, one, one]))).toBe(1)
    // 1,000 keys, of which 256 are asked for at a time.
    const many = [...records, ...Array.from({ length: 936 }, () => ({ key: newKey() }))]
    expect(await statements(() => readAll(store, many))).toBe(4)
  })

  it('and writes are one statement each, on a connection that is in use', async () => {
    const { store } = open()
    const [one] = (await put(store, 1)) as [SessionRecord]
    const writes = [
      () => store.create(record({ userId: '0' }), call()),
      () => store.touch(one.key, NOW + 1, NOW + 8e6, call()),
      () => store.update(one.key, 1, change(), call()),
      () => store.replace(one.key, 2, record({ userId: '0' }), { forward }, call()),
    ]
    for (const write of writes) expect(await statements(async () => expect(await write()).toMatch(/ed$/))).toBe(1)
  })

  it('fail all at once where their connection is lost, and the next one too, each with an error of its own', async () => {
    const { store, locks } = open()
    const records = await put(store, 64)
    const release = await locks.hold()
    try {
      let isOver = false
      const all = failures(records.map(({ key }) => store.read(key, call()))).finally(() => {
        isOver = true
      })
      // On the next connection too, where the read is repeated once.
      await until('the end of both connections', async () => {
        await locks.killWaiting()
        expect(isOver).toBe(true)
      })
      await all
    } finally {
      await release()
    }
    expect(await readAll(store, records)).toEqual(records)
  })
}

describeEngine('postgresql', 'reads of one turn on PostgreSQL', () => {
  const own = postgresOf(() => startPostgres({ shared_preload_libraries: 'pg_stat_statements' }))
  beforeAll(() => own.admin.query('CREATE EXTENSION pg_stat_statements'))
  const count = async () => {
    const sql = "SELECT sum(calls) AS n FROM pg_stat_statements WHERE query LIKE '%coatcheck_sessions%'"
    return Number((await own.admin.query(sql)).rows[0].n)
  }
  const clients = {
    pg: () => own.server.pool({ max: 1 }),
    'Postgres.js': () => own.server.postgresJs({ max: 1, fetch_types: false }),
  }
  describe.each(Object.keys(clients) as (keyof typeof clients)[])('through %s', client =>
    sharedReads(() => ({ store: new PostgresStore(clients[client]()), count, locks: own.locks })),
  )

  it('answer readers by the rows that a driver gave, and take no other for theirs', async () => {
    const { admin } = own
    const store = new PostgresStore(admin)
    const records = await put(store, 6)
    const stranger = record({ userId: '666' })
    await store.create(stranger, { now: NOW })
    /** A store whose driver answers each SELECT with what `change` makes of its rows. */
    const mistaken = (change: (rows: unknown[]) => unknown[]) =>
      new PostgresStore({
        async connect() {
          const client = await admin.connect()
          return Object.assign(Object.create(client), {
            release: (destroy: boolean) => client.release(destroy),
            query: (query: never, answer: (error: unknown, result?: pg.QueryResult) => void) =>
              client.query(query, (error: unknown, result: pg.QueryResult) =>
                error ? answer(error) : answer(null, { ...result, rows: change(result.rows) }),
              ),
          })
        },
      } as never)
    let strange: unknown
    const noting = mistaken(rows => {
      strange = rows[0]
      return rows
    })
    await noting.read(stranger.key, { now: NOW })
    const reversed = mistaken(rows => [...rows].reverse())
    expect(await readAll(reversed, records)).toEqual(records)
    // Fewer than asked for: the others are absent, as they are where nothing stands under their keys.
    const fewer = mistaken(rows => rows.slice(0, 4))
    const some = await readAll(fewer, records)
    expect(some.filter(found => found === null).length).toBe(2)
    for (const [place, found] of some.entries()) if (found !== null) expect(found).toEqual(records[place])
    const mistakes: ((rows: unknown[]) => unknown[])[] = [
      rows => [...rows.slice(1), strange],
      rows => [...rows, strange],
      rows => [...rows, rows[0]],
      rows => rows.map(() => strange),
      rows => rows.map(() => ({})),
    ]
    for (const change of mistakes)
      for (const asked of [records, records.slice(0, 1)]) {
        const wrong = mistaken(change)
        await failures(asked.map(({ key }) => wrong.read(key, { now: NOW })))
      }
  })
})

describeEngine('mariadb', 'reads of one turn on MariaDB', () => {
  const own = mariadbOf(sharedMariadb)
  const count = async () => {
    const [rows] = await own.admin.query<mysql.RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")
    return Number(rows[0]!.Value)
  }
  sharedReads(() => ({
    store: new MysqlStore(own.server.pool({ connectionLimit: 1 })),
    count,
    locks: own.locks,
  }))
})
