// Readers of one turn of the event loop who have nothing in common but the database: tenants, managers, stores, tables,
// contexts, limits. What is true of one of them is not made true of another.
import { AsyncLocalStorage } from 'node:async_hooks'
import { SessionManager, type SessionOptions, SessionStoreError, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { CLUSTER, STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
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
  store(table: string): Store | Promise<Store>
  /** Takes the client away, as a shutdown does. */
  end(): unknown
}

interface Place {
  open(): Client | Promise<Client>
  stop(): unknown
}

const times = (count: number) => Array.from({ length: count }, (_, index) => index)

function manyCallers(start: () => Place | Promise<Place>): void {
  let place: Place
  let client: Client
  const managers: Manager[] = []
  const managerOf = (store: Store, options: Options = {}): Manager => {
    const manager = new SessionManager<Data>({ store, sweepInterval: false, storeTimeout: '20s', ...options })
    managers.push(manager)
    return manager
  }
  beforeAll(async () => {
    place = await start()
    client = await place.open()
  })
  afterAll(async () => {
    await client?.end()
    await place?.stop()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Sessions of users with these names. */
  const logIn = (sessions: Manager, names: readonly string[]) =>
    Promise.all(names.map((name, index) => sessions.create({ user: { id: BigInt(index), name } })))
  const nameOf = async (sessions: Manager, secret: Parameters<Manager['get']>[0]) =>
    (await sessions.get(secret))?.user?.name ?? null

  it('tenants and managers find their own sessions, and no one else’s by the same ID', async () => {
    const store = await client.store('tenants')
    const tenants = [managerOf(store), managerOf(store).namespace('blue'), managerOf(store).namespace('green')]
    const held = await Promise.all(
      tenants.map((tenant, index) =>
        logIn(
          tenant,
          times(5).map(n => `${index} ${n}`),
        ),
      ),
    )
    const more = [managerOf(store), managerOf(store).namespace('blue'), managerOf(store).namespace('green')]
    const asked = [...tenants, ...more].flatMap((tenant, at) =>
      held.flatMap((sessions, of) =>
        sessions.map(({ secret }, n) => ({ tenant, secret, name: at % 3 === of ? `${of} ${n}` : null })),
      ),
    )
    const found = await Promise.all(asked.map(({ tenant, secret }) => nameOf(tenant, secret)))
    expect(found).toEqual(asked.map(({ name }) => name))
  })

  it('stores on one client find what is in their own table, and two on one table the same', async () => {
    const tables = ['first', 'first', 'second']
    const stores = await Promise.all(tables.map(table => client.store(table)))
    const [one, same, other] = stores.map(store => managerOf(store))
    const held = await logIn(one!, times(10).map(String))
    const theirs = await logIn(
      other!,
      times(10).map(n => `other ${n}`),
    )
    const asked = [...held, ...theirs].flatMap(({ secret }) =>
      [one!, same!, other!].map(sessions => nameOf(sessions, secret)),
    )
    const expected = [...times(10).map(n => [`${n}`, `${n}`, null]), ...times(10).map(n => [null, null, `other ${n}`])]
    expect(await Promise.all(asked)).toEqual(expected.flat())
  })

  it('each goes on in the context of its own request, and so does what is called for it', async () => {
    const context = new AsyncLocalStorage<number>()
    const heard: [bigint, number | undefined][] = []
    const sessions = managerOf(await client.store('contexts'), {
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

  it('those beyond maxPendingCalls are refused, and the others are answered', async () => {
    const store = await client.store('limits')
    const sessions = managerOf(store)
    const held = await logIn(sessions, times(30).map(String))
    const limited = managerOf(store, { maxPendingCalls: 10 })
    for (const _ of times(2)) {
      const outcomes = await Promise.allSettled(held.map(({ secret }) => limited.get(secret)))
      for (const [n, outcome] of outcomes.entries())
        if (outcome.status === 'fulfilled') expect(outcome.value?.user?.name).toBe(`${n}`)
        else expect(outcome.reason).toBeInstanceOf(SessionStoreError)
      expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(10)
    }
    expect(await Promise.all(held.slice(0, 10).map(({ secret }) => nameOf(limited, secret)))).toEqual(
      times(10).map(String),
    )
  })

  it('none is logged out where the event loop was blocked for longer than storeTimeout before its read was sent', async () => {
    const store = await client.store('blocked')
    const held = await logIn(managerOf(store), times(20).map(String))
    const hasty = managerOf(store, { storeTimeout: '20ms' })
    const patient = managerOf(store)
    const gets = held.map(({ secret }) => [hasty.get(secret), patient.get(secret)] as const)
    const outcomes = Promise.allSettled(gets.map(([get]) => get))
    for (const end = performance.now() + 60; performance.now() < end; );
    for (const outcome of await outcomes)
      if (outcome.status === 'fulfilled') expect(outcome.value).not.toBeNull()
      else expect(outcome.reason).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
    expect((await Promise.all(gets.map(([, get]) => get))).map(session => session?.user?.name)).toEqual(
      times(20).map(String),
    )
    expect(await nameOf(patient, held[0]!.secret)).toBe('0')
  })

  it('all are answered where an application has put a clock of its own in place of Date', async () => {
    const sessions = managerOf(await client.store('clocks'))
    const held = await logIn(sessions, times(10).map(String))
    vi.useFakeTimers({ toFake: ['Date'] })
    expect(await Promise.all(held.map(({ secret }) => nameOf(sessions, secret)))).toEqual(times(10).map(String))
  })

  it('none is logged out where the client is closed in the same turn, or was closed before', async () => {
    const own = await place.open()
    const sessions = managerOf(await own.store('closed'), { storeTimeout: '2s' })
    const held = await logIn(sessions, times(10).map(String))
    const same = Promise.allSettled(held.map(({ secret }) => sessions.get(secret)))
    const ended = own.end()
    const outcomes = [...(await same), ...(await Promise.allSettled(held.map(({ secret }) => sessions.get(secret))))]
    await ended
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled') expect(outcome.value).not.toBeNull()
      else expect(outcome.reason).toBeInstanceOf(SessionStoreError)
    // An application may add to the error of a request.
    const errors = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(new Set(errors).size).toBe(errors.length)
  })
}

describe('many callers of the memory store in one turn', () => {
  manyCallers(() => {
    const open = () => {
      const stores = new Map<string, Store>()
      const store = (table: string) => {
        if (!stores.has(table)) stores.set(table, new MemoryStore())
        return stores.get(table)!
      }
      return { store, end() {} }
    }
    return { open, stop() {} }
  })
})

for (const name of ['node-redis 6', 'ioredis 6', 'node-redis 6 pool'])
  describeEngine('redis', `many callers of Redis in one turn with ${name}`, () => {
    manyCallers(async () => {
      const server = await startRedis()
      const open = async () => {
        const { client, close } = await STANDALONE[name]!(server.url)
        return { store: (table: string) => new RedisStore(client, { prefix: `${table}:` }), end: close }
      }
      return { open, stop: server.stop }
    })
  })

for (const name of ['node-redis 6 cluster', 'ioredis 6 cluster'])
  describeEngine('redis', `many callers of a Redis Cluster in one turn with ${name}`, () => {
    manyCallers(async () => {
      const cluster = await sharedRedisCluster()
      const open = async () => {
        const { client, close } = await CLUSTER[name]!(cluster.addresses)
        return { store: (table: string) => new RedisStore(client, { prefix: `${table}:` }), end: close }
      }
      return { open, stop: cluster.stop }
    })
  })

describeEngine('postgresql', 'many callers of PostgreSQL in one turn', () => {
  manyCallers(async () => {
    const server = await sharedPostgres()
    const open = () => {
      const pool = server.pool({ max: 4 })
      const store = async (table: string) => {
        const opened = new PostgresStore(pool, { table })
        await opened.migrate()
        return opened
      }
      return { store, end: () => pool.end() }
    }
    return { open, stop: server.stop }
  })
})

describeEngine('mariadb', 'many callers of MariaDB in one turn', () => {
  manyCallers(async () => {
    const server = await sharedMariadb()
    const open = () => {
      const pool = server.pool({ connectionLimit: 4 })
      const store = async (table: string) => {
        const opened = new MysqlStore(pool, { table })
        await opened.migrate()
        return opened
      }
      return { store, end: () => pool.end() }
    }
    return { open, stop: server.stop }
  })
})

describeEngine('libsql', 'many callers of SQLite in one turn', () => {
  manyCallers(() => {
    const { file, remove } = sqliteFile()
    const open = () => {
      const database = openSqlite('libsql', file)
      const store = async (table: string) => {
        const opened = new SqliteStore(database, { table })
        await opened.migrate()
        return opened
      }
      return { store, end: () => database.close() }
    }
    return { open, stop: remove }
  })
})
