// What an engine may forget of what it acknowledged when it dies, by its settings: the pages of the stores say which.

import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { STANDALONE } from '../../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0 } from '../../support/redis/records.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startMariadb } from '../../support/services/mariadb.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { startRedis } from '../../support/services/redis.ts'

interface Mortal {
  open(): Promise<{ store: Store; close(): Promise<unknown> | unknown }>
  /** Makes sure that what is there is kept. */
  keep(): Promise<unknown>
  kill(): Promise<void>
  restart(): Promise<void>
}

const LOG_OUTS = 3

/**
 * How many of some logouts that were acknowledged are lost: the session is back after the server was killed in the
 * moment of the answer, and started again.
 */
async function lost({ open, keep, kill, restart }: Mortal): Promise<number> {
  let back = 0
  for (let round = 0; round < LOG_OUTS; round++) {
    const { store, close } = await open()
    const record = recordOf({ shard: user => store.shard?.(user) ?? 'abc' } as Store, '42', { expiresAt: T0 + HOUR })
    expect(await store.create(record, { now: T0, deadline: soon() })).toBe('created')
    await keep()
    expect(await store.delete(record.key, { now: T0, deadline: soon() })).toBe(true)
    await kill()
    await close()
    await restart()
    if (await isThere(open, record)) back++
  }
  return back
}

async function isThere(open: Mortal['open'], { key }: SessionRecord): Promise<boolean> {
  const { store, close } = await open()
  const found = await until('an answer', () => Promise.resolve(store.read(key, { now: T0, deadline: soon() })))
  await close()
  return found !== null
}

describeEngine('redis', 'a Redis that is killed right after it acknowledged a logout', () => {
  const loss = async (...options: string[]) => {
    const server = await startRedis(options)
    try {
      return await lost({
        async open() {
          const { client, close } = await STANDALONE['node-redis 6']!(server.url)
          return { store: new RedisStore(client), close }
        },
        keep: () => server.cli('SAVE'),
        kill: () => server.kill(),
        restart: () => server.restart(),
      })
    } finally {
      await server.stop()
    }
  }

  it('has the session back where it keeps snapshots alone', { timeout: 120_000 }, async () => {
    expect(await loss('--save', '3600 1')).toBe(LOG_OUTS)
  })

  it('loses no logout with appendonly yes and appendfsync always', { timeout: 120_000 }, async () => {
    expect(await loss('--appendonly', 'yes', '--appendfsync', 'always')).toBe(0)
  })
})

describeEngine('postgresql', 'a PostgreSQL that is killed right after it acknowledged a logout', () => {
  const loss = async (settings: Record<string, string>) => {
    const server = await startPostgres(settings)
    try {
      await new PostgresStore(server.pool({ max: 1 })).migrate()
      return await lost({
        async open() {
          const pool = server.pool({ max: 1 })
          return { store: new PostgresStore(pool), close: () => {} }
        },
        keep: async () => void (await server.pool({ max: 1 }).query('CHECKPOINT')),
        kill: () => server.kill(),
        restart: () => server.restart(),
      })
    } finally {
      await server.stop()
    }
  }

  it('may have the session back with synchronous_commit off', { timeout: 120_000 }, async () => {
    // The write-ahead log is written at most so often then.
    expect(await loss({ synchronous_commit: 'off', wal_writer_delay: '10s' })).toBeGreaterThan(0)
  })

  it('loses no logout with its defaults', { timeout: 120_000 }, async () => {
    expect(await loss({ fsync: 'on' })).toBe(0)
  })
})

describeEngine('mariadb', 'a MariaDB that is killed right after it acknowledged a logout', () => {
  const loss = async (flush: string) => {
    // The log goes to the file at most so often then, in seconds: each second by default, which a slow machine may be beaten by.
    const seldom = { 'innodb-flush-log-at-timeout': '2700' }
    const server = await startMariadb({ 'innodb-flush-log-at-trx-commit': flush, ...seldom })
    try {
      await new MysqlStore(server.pool({ connectionLimit: 1 })).migrate()
      return await lost({
        async open() {
          return { store: new MysqlStore(server.pool({ connectionLimit: 1 })), close: () => {} }
        },
        // What is in the log's buffer goes to the file; with 0, FLUSH ENGINE LOGS leaves it there.
        async keep() {
          const pool = server.pool({ connectionLimit: 1 })
          for (const each of ['1', flush]) {
            await pool.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${each}`)
            await pool.query('FLUSH ENGINE LOGS')
          }
        },
        kill: () => server.kill(),
        restart: () => server.restart(),
      })
    } finally {
      await server.stop()
    }
  }

  it('may have the session back with innodb_flush_log_at_trx_commit = 0', { timeout: 120_000 }, async () => {
    expect(await loss('0')).toBeGreaterThan(0)
  })

  it('loses no logout with innodb_flush_log_at_trx_commit = 1', { timeout: 120_000 }, async () => {
    expect(await loss('1')).toBe(0)
  })
})
