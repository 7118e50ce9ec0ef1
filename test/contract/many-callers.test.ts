// Readers of one turn of the event loop who have nothing in common but the database: tenants, managers, tables, contexts,
// time limits. What is true of one of them is not made true of another.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type SessionId, SessionManager, type SessionOptions, SessionStoreError, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLUSTER, type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { sharedRedisCluster, startRedis } from '../support/services/redis.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'

type Data = Record<string, unknown>
type Manager = SessionManager<Data>
type Options = Partial<SessionOptions<Data, 'bigint', Data>>

/** A client of the database, and stores on it. */
interface Client {
  /** A store in a table, or under a prefix, of its own. */
  store(table: string): Store
  /** Takes the client away, as a shutdown does. */
  end(): unknown
}

interface Place {
  open(): Client | Promise<Client>
  stop(): unknown
}

const redisClient = ({ client, close }: OpenClient): Client => ({
  store: table => new RedisStore(client, { prefix: `${table}:` }),
  end: close,
})

const PLACES: Record<string, [EngineName | null, () => Place | Promise<Place>]> = {
  'the memory store': [
    null,
    () => {
      const stores = new Map<string, Store>()
      const store = (table: string) => stores.get(table) ?? stores.set(table, new MemoryStore()).get(table)!
      return { open: () => ({ store, end() {} }), stop() {} }
    },
  ],
  'Redis with node-redis': [
    'redis',
    async () => {
      const { url, stop } = await startRedis()
      return { open: async () => redisClient(await STANDALONE['node-redis 6']!(url)), stop }
    },
  ],
  'a Redis Cluster with ioredis': [
    'redis',
    async () => {
      const { addresses, stop } = await sharedRedisCluster()
      return { open: async () => redisClient(await CLUSTER['ioredis 6 cluster']!(addresses)), stop }
    },
  ],
  PostgreSQL: [
    'postgresql',
    async () => {
      const server = await sharedPostgres()
      const open = () => {
        const pool = server.pool({ max: 4 })
        return { store: (table: string) => new PostgresStore(pool, { table }), end: () => pool.end() }
      }
      return { open, stop: server.stop }
    },
  ],
  MariaDB: [
    'mariadb',
    async () => {
      const server = await sharedMariadb()
      const open = () => {
        const pool = server.pool({ connectionLimit: 4 })
        return { store: (table: string) => new MysqlStore(pool, { table }), end: () => pool.end() }
      }
      return { open, stop: server.stop }
    },
  ],
  SQLite: [
    'libsql',
    () => {
      const { file, remove } = sqliteFile()
      const open = () => {
        const database = openSqlite('libsql', file)
        return { store: (table: string) => new SqliteStore(database, { table }), end: () => database.close() }
      }
      return { open, stop: remove }
    },
  ],
}

const times = (count: number) => Array.from({ length: count }, (_, index) => index)

/** The answers, or the errors; each reader has an error of its own, which an application may add to. */
async function settled<T>(asked: readonly Promise<T>[]) {
  const outcomes = await Promise.allSettled(asked)
  const errors = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
  for (const error of errors) {
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
  }
  expect(new Set(errors).size).toBe(errors.length)
  return { errors, answers: outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : [])) }
}

function manyCallers(start: () => Place | Promise<Place>): void {
  let place: Place
  let client: Client
  beforeAll(async () => {
    place = await start()
    client = await place.open()
  })
  afterAll(async () => {
    await client?.end()
    await place?.stop()
  })
  const opened = async (table: string, of = client) => {
    const store = of.store(table)
    if ('migrate' in store) await (store as PostgresStore).migrate()
    return store
  }
  const managerOf = (store: Store, options: Options = {}): Manager =>
    new SessionManager<Data>({ store, sweepInterval: false, storeTimeout: '20s', ...options })
  /** Sessions of users with these names. */
  const logIn = (sessions: Manager, names: readonly string[]) =>
    Promise.all(names.map((name, index) => sessions.create({ user: { id: BigInt(index), name } })))
  const nameOf = async (sessions: Manager, secret: SessionId) => (await sessions.get(secret))?.user?.name ?? null

  it('tenants, managers and tables have their own sessions, and no one else’s by the same ID', async () => {
    const [first, same, second] = [await opened('first'), await opened('first'), await opened('second')]
    const sidesOf = (store: Store) => [managerOf(store), managerOf(store).namespace('blue')]
    const sides = [...sidesOf(first), ...sidesOf(second)]
    const held = await Promise.all(
      sides.map((sessions, of) =>
        logIn(
          sessions,
          times(5).map(n => `${of} ${n}`),
        ),
      ),
    )
    // The third pair is on the table of the first.
    const asked = [...sides, ...sidesOf(same)].flatMap((sessions, at) =>
      held.flatMap((theirs, of) =>
        theirs.map(({ secret }, n) => ({ sessions, secret, name: at % 4 === of ? `${of} ${n}` : null })),
      ),
    )
    const found = await Promise.all(asked.map(({ sessions, secret }) => nameOf(sessions, secret)))
    expect(found).toEqual(asked.map(({ name }) => name))
  })

  it('each goes on in the context of its own request, and so does what is called for it', async () => {
    const context = new AsyncLocalStorage<number>()
    const heard: [bigint, number | undefined][] = []
    const sessions = managerOf(await opened('contexts'), {
      getPasswordVersion: async id => {
        heard.push([id, context.getStore()])
        return 1
      },
    })
    const held = await Promise.all(
      times(20).map(n => sessions.create({ user: { id: BigInt(n), name: `${n}`, passwordVersion: 1 } })),
    )
    heard.length = 0
    const contexts = await Promise.all(
      held.map(({ secret }, n) =>
        context.run(n, async () => {
          await sessions.get(secret)
          return context.getStore()
        }),
      ),
    )
    expect(contexts).toEqual(times(20))
    expect(heard.toSorted(([a], [b]) => Number(a) - Number(b))).toEqual(times(20).map(n => [BigInt(n), n]))
  })

  it('none is logged out where the event loop was blocked for longer than storeTimeout before its read was sent', async () => {
    const store = await opened('blocked')
    const names = times(20).map(String)
    const held = await logIn(managerOf(store), names)
    const [hasty, patient] = [managerOf(store, { storeTimeout: '20ms' }), managerOf(store)]
    const gets = held.map(({ secret }) => [hasty.get(secret), patient.get(secret)] as const)
    const early = settled(gets.map(([get]) => get))
    for (const end = performance.now() + 60; performance.now() < end; );
    expect((await early).answers).not.toContain(null)
    expect((await Promise.all(gets.map(([, get]) => get))).map(session => session?.user?.name)).toEqual(names)
  })

  it('none is logged out where the client is closed in the same turn, or was closed before', async () => {
    const own = await place.open()
    const sessions = managerOf(await opened('closed', own), { storeTimeout: '2s' })
    const held = await logIn(sessions, times(10).map(String))
    const asked = () => held.map(({ secret }) => sessions.get(secret))
    const same = settled(asked())
    const ended = own.end()
    for (const { answers } of [await same, await settled(asked())]) expect(answers).not.toContain(null)
    await ended
  })
}

for (const [name, [engine, start]] of Object.entries(PLACES)) {
  const tests = () => manyCallers(start)
  if (engine === null) describe(`many callers of ${name} in one turn`, tests)
  else describeEngine(engine, `many callers of ${name} in one turn`, tests)
}

const thrown = (): never => {
  throw new Error('this client is broken')
}

it.each<[string, () => Store]>([
  [
    'RedisStore',
    () =>
      new RedisStore({ isOpen: true, isReady: true, sendCommand: thrown } as unknown as RedisClient, {
        allowEviction: true,
      }),
  ],
  ['PostgresStore', () => new PostgresStore(Object.assign(new pg.Pool(), { connect: thrown }) as never)],
  ['MysqlStore', () => new MysqlStore(Object.assign(mysql.createPool({}), { getConnection: thrown }) as never)],
])('%s tells each of many callers where its client throws instead of rejecting', async (_, open) => {
  const sessions = new SessionManager({ store: open(), sweepInterval: false })
  const ids = ['A', 'B', 'B', 'C'].map(letter => letter.repeat(43) as SessionId)
  const reasons = (error: unknown): string[] => (error instanceof Error ? [error.message, ...reasons(error.cause)] : [])
  for (const asked of [ids, ids.slice(0, 1)]) {
    const { errors } = await settled(asked.map(id => sessions.get(id)))
    expect(errors.length).toBe(asked.length)
    for (const error of errors) expect(reasons(error)).toContain('this client is broken')
  }
})
