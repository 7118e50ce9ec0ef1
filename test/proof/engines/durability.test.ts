// What an engine may forget of what it acknowledged when it dies, by its settings: the pages of the stores say which.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { HOUR, recordOf, soon, T0 } from '../../support/records.ts'
import { STANDALONE } from '../../support/redis/clients.ts'
import { describeEngine, type EngineName } from '../../support/services/engines.ts'
import { startMariadb } from '../../support/services/mariadb.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { startRedis } from '../../support/services/redis.ts'

interface Mortal {
  readonly server: { kill(): Promise<void>; restart(): Promise<void>; stop(): Promise<unknown> }
  open(): Promise<{ store: Store; close?(): Promise<unknown> | unknown }>
  /** Makes sure that what is there is kept. */
  keep(): Promise<unknown>
}

const LOG_OUTS = 3
const call = () => ({ now: T0, deadline: soon() })

/**
 * How many of some logouts that were acknowledged are lost: the session is back after the server was killed in the
 * moment of the answer, and started again.
 */
async function lost({ server, open, keep }: Mortal): Promise<number> {
  let back = 0
  for (let round = 0; round < LOG_OUTS; round++) {
    const { store, close } = await open()
    const record = recordOf({ shard: user => store.shard?.(user) ?? 'abc' } as Store, '42', { expiresAt: T0 + HOUR })
    expect(await store.create(record, call())).toBe('created')
    await keep()
    expect(await store.delete(record.key, call())).toBe(true)
    await server.kill()
    await close?.()
    await server.restart()
    if (await isThere(open, record)) back++
  }
  return back
}

async function isThere(open: Mortal['open'], { key }: SessionRecord): Promise<boolean> {
  const { store, close } = await open()
  const found = await until('an answer', () => Promise.resolve(store.read(key, call())))
  await close?.()
  return found !== null
}

async function redis(...options: string[]): Promise<Mortal> {
  const server = await startRedis(options)
  const open = async () => {
    const { client, close } = await STANDALONE['node-redis 6']!(server.url)
    return { store: new RedisStore(client), close }
  }
  return { server, open, keep: () => server.cli('SAVE') }
}

async function postgres(settings: Record<string, string>): Promise<Mortal> {
  const server = await startPostgres(settings)
  await new PostgresStore(server.pool({ max: 1 })).migrate()
  const open = async () => ({ store: new PostgresStore(server.pool({ max: 1 })) })
  return { server, open, keep: () => server.pool({ max: 1 }).query('CHECKPOINT') }
}

async function mariadb(flush: string): Promise<Mortal> {
  // The log goes to the file at most so often then, in seconds: each second by default, which a slow machine may be beaten by.
  const seldom = { 'innodb-flush-log-at-timeout': '2700' }
  // A log that is in memory MariaDB takes for memory that a crash leaves as it is.
  const server = await startMariadb({ 'innodb-flush-log-at-trx-commit': flush, ...seldom }, { onDisk: true })
  await new MysqlStore(server.pool({ connectionLimit: 1 })).migrate()
  const open = async () => ({ store: new MysqlStore(server.pool({ connectionLimit: 1 })) })
  // What is in the log's buffer goes to the file; with 0, FLUSH ENGINE LOGS leaves it there.
  const keep = async () => {
    const pool = server.pool({ connectionLimit: 1 })
    for (const each of ['1', flush]) {
      await pool.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${each}`)
      await pool.query('FLUSH ENGINE LOGS')
    }
  }
  return { server, open, keep }
}

const SETTINGS: readonly (readonly [EngineName, setting: string, start: () => Promise<Mortal>, mayLose: boolean])[] = [
  ['redis', 'keeps snapshots alone', () => redis('--save', '3600 1'), true],
  ['redis', 'has appendfsync always', () => redis('--appendonly', 'yes', '--appendfsync', 'always'), false],
  // The write-ahead log is written at most so often then.
  [
    'postgresql',
    'has synchronous_commit off',
    () => postgres({ synchronous_commit: 'off', wal_writer_delay: '10s' }),
    true,
  ],
  ['postgresql', 'has its defaults', () => postgres({ fsync: 'on' }), false],
  ['mariadb', 'has innodb_flush_log_at_trx_commit = 0', () => mariadb('0'), true],
  ['mariadb', 'has innodb_flush_log_at_trx_commit = 1', () => mariadb('1'), false],
]
for (const [engine, setting, start, mayLose] of SETTINGS)
  describeEngine(engine, `${engine} is killed right after it acknowledged a logout, and ${setting}`, () => {
    it(mayLose ? 'may have the session back' : 'loses no logout', { timeout: 120_000 }, async () => {
      const mortal = await start()
      const back = await lost(mortal).finally(() => mortal.server.stop())
      if (mayLose) expect(back).toBeGreaterThan(0)
      else expect(back).toBe(0)
    })
  })
