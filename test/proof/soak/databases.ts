// The databases of the soak, with settings under which what was acknowledged survives a crash, and what there is to count.
import { SessionManager } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { openStore } from '../../../examples/server/store.mjs'
import { startPostgres } from '../../support/services/postgres.ts'
import { startRedis } from '../../support/services/redis.ts'

export type DatabaseName = 'redis' | 'postgresql'

export interface Database {
  readonly url: string
  /** Ends it: with `crash` at once, else as an operator does. */
  end(crash: boolean): Promise<void>
  restart(): Promise<void>
  /** Rows or keys that nothing will remove, or that should have been removed before. */
  overdue(): Promise<number>
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

/** As the example opens its store. */
export async function countLive(url: string): Promise<number> {
  const { store, close } = await openStore(url)
  return new SessionManager({ store, sweepInterval: false, storeTimeout: '20s' }).count().finally(close)
}

/** How many keys have no end of their own, or one that is too far away. */
const OVERDUE = `
local overdue = 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left == -1 or left > tonumber(ARGV[1]) then overdue = overdue + 1 end
end
return overdue`

async function openRedis(): Promise<Database> {
  const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
  return {
    url: server.url,
    end: crash => (crash ? server.kill() : server.kill('SIGTERM')),
    restart: () => server.restart(),
    overdue: async () => Number(await server.cli('EVAL', OVERDUE, '0', `${LONGEST}`)),
    connections: async () => (await server.cli('CLIENT', 'LIST')).trim().split('\n').length - 1,
    stop: server.stop,
  }
}

async function openPostgres(): Promise<Database> {
  // As a server in production has them: a commit is on the disk before it is acknowledged.
  const server = await startPostgres({ fsync: 'on', synchronous_commit: 'on' })
  const pool = server.pool({ max: 1 })
  await new PostgresStore(pool).migrate()
  const number = async (text: string, values: unknown[] = []) =>
    (await pool.query(`SELECT (${text})::int AS n`, values)).rows[0].n
  return {
    url: server.url(),
    end: crash => (crash ? server.kill() : server.kill('SIGINT')),
    restart: () => server.restart(),
    overdue: () =>
      number(
        `SELECT (SELECT count(*) FROM coatcheck_sessions WHERE expires_at < $1)
          + (SELECT count(*) FROM coatcheck_sessions_users WHERE expires_at < $1)`,
        [Date.now() - MARGIN - SWEPT],
      ),
    connections: () => number(`SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'`),
    stop: server.stop,
  }
}

export const DATABASES: Readonly<Record<DatabaseName, () => Promise<Database>>> = {
  redis: openRedis,
  postgresql: openPostgres,
}
