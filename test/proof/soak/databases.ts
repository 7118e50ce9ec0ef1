// The databases of the soak, with settings under which what was acknowledged survives a crash, and what there is to count.
import { SessionManager, type Store } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import pg from 'pg'
import { createClient } from 'redis'
import { startPostgres } from '../../support/services/postgres.ts'
import { startRedis } from '../../support/services/redis.ts'

export type DatabaseName = 'redis' | 'postgresql'

/** What the database holds, and how much of it ought to be gone. */
export interface Contents {
  /** Live sessions, as the manager counts them. */
  readonly sessions: number
  /** Rows or keys that nothing will remove, or that should have been removed before. */
  readonly overdue: number
}

export interface Database {
  readonly url: string
  /** Ends it: with `crash` at once, else as an operator does. */
  end(crash: boolean): Promise<void>
  restart(): Promise<void>
  contents(): Promise<Contents>
  /** Connections of clients, without the one that asks. */
  connections(): Promise<number>
  stop(): Promise<void>
}

/** What is expired is kept for this time, in ms, in case a clock is wrong: `SWEEP_MARGIN` of the contract. */
const MARGIN = 300_000
/** The nodes sweep every 2 seconds, or a quarter later. A machine that is busy may take longer. */
const SWEPT = 60_000
/** The longest life that anything has, in ms: what a password change leaves for a user lives a day. */
const LONGEST = 24 * 3_600_000 + 2 * MARGIN

async function countLive(store: Store): Promise<number> {
  const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '20s' })
  try {
    return await sessions.count()
  } finally {
    await sessions.close()
  }
}

async function openRedis(): Promise<Database> {
  const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
  const withClient = async <T>(work: (client: ReturnType<typeof createClient>) => Promise<T>): Promise<T> => {
    const client = createClient({ url: server.url })
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client as ReturnType<typeof createClient>)
    } finally {
      client.destroy()
    }
  }
  return {
    url: server.url,
    end: crash => (crash ? server.kill() : server.kill('SIGTERM')),
    restart: () => server.restart(),
    contents: () =>
      withClient(async client => {
        let overdue = 0
        for await (const keys of client.scanIterator({ COUNT: 1000 }))
          for (const key of keys) {
            const left = await client.pTTL(key)
            if (left === -1 || left > LONGEST) overdue++
          }
        return { sessions: await countLive(new RedisStore(client)), overdue }
      }),
    connections: () =>
      withClient(
        async client => (await client.sendCommand(['CLIENT', 'LIST'])).toString().trim().split('\n').length - 1,
      ),
    stop: server.stop,
  }
}

async function openPostgres(): Promise<Database> {
  // As a server in production has them: a commit is on the disk before it is acknowledged.
  const server = await startPostgres({ fsync: 'on', synchronous_commit: 'on' })
  const withPool = async <T>(work: (pool: pg.Pool) => Promise<T>): Promise<T> => {
    const pool = new pg.Pool({ connectionString: server.url(), max: 1, application_name: 'soak' })
    pool.on('error', () => {})
    try {
      return await work(pool)
    } finally {
      await pool.end()
    }
  }
  await withPool(pool => new PostgresStore(pool).migrate())
  return {
    url: server.url(),
    end: crash => (crash ? server.kill() : server.kill('SIGINT')),
    restart: () => server.restart(),
    contents: () =>
      withPool(async pool => {
        const { rows } = await pool.query(
          `SELECT (SELECT count(*)::int FROM coatcheck_sessions WHERE expires_at < $1)
             + (SELECT count(*)::int FROM coatcheck_sessions_users WHERE expires_at < $1) AS overdue`,
          [Date.now() - MARGIN - SWEPT],
        )
        return { ...rows[0], sessions: await countLive(new PostgresStore(pool)) }
      }),
    connections: () =>
      withPool(async pool => {
        const { rows } = await pool.query(
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'soak'`,
        )
        return rows[0].n
      }),
    stop: server.stop,
  }
}

export const DATABASES: Readonly<Record<DatabaseName, () => Promise<Database>>> = {
  redis: openRedis,
  postgresql: openPostgres,
}
