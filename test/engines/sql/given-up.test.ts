// What becomes of statements that their callers have given up: they are not run late, not left behind at the server, and
// not kept in memory.
import type { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { SessionStoreError, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { soon, within } from '../../support/deadlines.ts'
import { leaked } from '../../support/scan.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type MariadbServer, startMariadb } from '../../support/services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { type FaultProxy, startProxy } from '../../support/services/proxy.ts'
import { anonymous, NOW, newKey, newWriteId, record } from '../../support/sql/records.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** The error of a call that has to fail. */
const failure = (call: unknown): Promise<SessionStoreError> =>
  Promise.resolve(call).then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => {
      expect(error).toBeInstanceOf(SessionStoreError)
      return error
    },
  )

/** Fails on an uncaught error, which ends a process outside of a test runner. */
async function survive(work: () => Promise<void>): Promise<void> {
  const uncaught: unknown[] = []
  const note = (error: unknown) => uncaught.push(error)
  process.on('uncaughtException', note)
  try {
    await work()
  } finally {
    process.off('uncaughtException', note)
  }
  expect(uncaught).toEqual([])
}

interface Server {
  /** The database as it is, without the proxy. */
  readonly direct: Store
  readonly proxy: FaultProxy
  /** A store that reaches the database through the proxy. */
  open(max: number, name?: string): Store
  /** How many connections the server has of a store with this name (PostgreSQL) or of all such stores. */
  connections(name: string): Promise<number>
  /** Holds a lock of the whole table, as ALTER TABLE does; gives what ends it. */
  lockTable(): Promise<() => Promise<void>>
  /** How many connections of a pool of 5 there may be: what is destroyed goes a moment later. */
  readonly atMost: number
  /** What a COMMIT looks like on the wire, unlike READ COMMITTED. */
  readonly commit: string
}

function givenUp(get: () => Server) {
  const change = () => ({ data: '"late"', seenAt: NOW + 5, expiresAt: NOW + 9e6, writeId: newWriteId() })
  const forward = { salt: 'c2FsdA', until: NOW }
  type Write = (store: Store, one: SessionRecord, other: SessionRecord, deadline: number) => Promise<unknown>
  const writes: Record<string, Write> = {
    update: (store, one, _, deadline) => store.update(one.key, 1, change(), { now: NOW, deadline }),
    touch: (store, one, _, deadline) => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline }),
    logout: (store, one, _, deadline) => store.delete(one.key, { now: NOW, deadline }),
    login: (store, _, other, deadline) => store.create(other, {}, { now: NOW, deadline }),
    'new anonymous session': (store, _, { key }, deadline) =>
      store.create(anonymous({ key }), {}, { now: NOW, deadline }),
    'login at a limit': (store, _, other, deadline) =>
      store.create(other, { limit: { max: 1, onLimit: 'end-oldest' } }, { now: NOW, deadline }),
    'new ID': (store, one, other, deadline) => store.replace(one.key, 1, other, {}, { now: NOW, deadline }),
    'new ID with a forward': (store, one, other, deadline) =>
      store.replace(one.key, 1, other, { forward }, { now: NOW, deadline }),
    'logout everywhere': (store, one, _, deadline) =>
      store.deleteUser(
        one.userId!,
        { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 },
        { now: NOW, deadline },
      ),
  }
  let user = 7000
  for (const name of ['login at a limit', 'logout everywhere'])
    it(`does not run a ${name} that was given up in a stalled network when the network heals`, async () => {
      const { direct, open, proxy } = get()
      const one = record({ userId: `${++user}` })
      const other = record({ userId: one.userId })
      await direct.create(one, {}, { now: NOW })
      const store = open(1)
      // As on any connection that has been in use for some time: nothing is left to be prepared.
      const before = record({ userId: `${++user}` })
      await direct.create(before, {}, { now: NOW })
      await writes[name]!(store, before, record({ userId: before.userId }), within(5000))
      proxy.stall()
      expect(await failure(writes[name]!(store, one, other, within(250)))).toMatchObject({ status: 503 })
      await pause(50)
      await proxy.heal()
      expect(await direct.read(one.key, { now: NOW })).toEqual(one)
      expect(await direct.read(other.key, { now: NOW })).toBe(null)
      expect((await direct.create(other, {}, { now: NOW })).outcome).toBe('created')
      expect((await store.listUser(one.userId!, 'session', { now: NOW, deadline: within(5000) })).length).toBe(2)
    })

  // Only the difference between the two clocks counts: a network that delivers a write late is told by it, too.
  const behind = async (ms: number, work: () => Promise<void>) => {
    const real = Date.now.bind(Date)
    const set = vi.spyOn(Date, 'now').mockImplementation(() => real() - ms)
    await work().finally(() => set.mockRestore())
  }
  const ENDING = new Set(['touch', 'logout', 'logout everywhere'])
  for (const [name, write] of Object.entries(writes)) {
    const set = async () => {
      const one = record({ userId: `${++user}` })
      await get().direct.create(one, {}, { now: NOW })
      const other = record({ userId: one.userId })
      return { one, run: () => write(get().direct, one, other, soon()), other }
    }
    if (ENDING.has(name))
      it(`runs a ${name} whenever it comes to the database`, async () => {
        const { one, run } = await set()
        await behind(400_000, async () => expect(await run()).toBeTruthy())
        if (name !== 'touch') expect(await get().direct.read(one.key, { now: NOW })).toBe(null)
      })
    else
      it(`refuses a ${name} that comes to the database after the tolerance of clocks, and names both clocks`, async () => {
        const { one, other, run } = await set()
        await behind(400_000, async () => {
          const error = await failure(run())
          expect(error.outcome).toBe('not-applied')
          expect(String(error.cause)).toMatch(
            /came too late: the clock of the database says 2.*Z, that of this process 2/,
          )
        })
        expect(await get().direct.read(one.key, { now: NOW })).toEqual(one)
        expect(await get().direct.read(other.key, { now: NOW })).toBe(null)
        await behind(240_000, async () => expect(await run()).toBeTruthy())
      })
  }

  it('does not make a session at a limit whose last step was given up in a stalled network', async () => {
    const { direct, open, proxy, commit } = get()
    const one = record({ userId: `${++user}` })
    const other = record({ userId: one.userId })
    await direct.create(one, {}, { now: NOW })
    const store = open(1)
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    const stalled = proxy.stallAt(commit)
    const limit = { max: 1, onLimit: 'end-oldest' } as const
    await failure(store.create(other, { limit }, { now: NOW, deadline: within(400) }))
    await stalled
    // The databases count whole seconds here.
    await pause(1500)
    await proxy.heal()
    expect(await direct.read(other.key, { now: NOW })).toBe(null)
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it.each([-30_000, 30_000])('loses no write when one of the clocks is set by %d ms', async difference => {
    const store = get().open(1)
    const one = record({ userId: `${++user}` })
    await store.create(one, {}, { now: NOW })
    const real = performance.now.bind(performance)
    // Only the difference between the two clocks counts, so that it does not matter which of them was set.
    const set = vi.spyOn(performance, 'now').mockImplementation(() => real() + difference)
    try {
      expect(await store.update(one.key, 1, change(), { now: NOW, deadline: within(20_000) })).toBe('updated')
      expect(await store.delete(one.key, { now: NOW, deadline: within(20_000) })).toBe(true)
    } finally {
      set.mockRestore()
    }
  })

  it('answers writes of a slow database within the time of one statement', async () => {
    const { open, proxy } = get()
    const store = open(1)
    const one = record({ userId: `${++user}` })
    await store.create(one, {}, { now: NOW })
    await store.touch(one.key, NOW + 1, NOW + 8e6, { now: NOW })
    proxy.slow(1000)
    try {
      for (const at of [2, 3])
        expect(await store.touch(one.key, NOW + at, NOW + 8e6 + at, { now: NOW, deadline: within(1900) })).toBe(
          'touched',
        )
    } finally {
      proxy.slow(0)
    }
  })

  it('never holds more connections than the pool while the table is locked, however long callers go on', async () => {
    const { direct, open, connections, lockTable, atMost } = get()
    const store = open(5, 'crowd')
    await Promise.all(Array.from({ length: 5 }, () => store.read(newKey(), { now: NOW })))
    const release = await lockTable()
    let most = 0
    let failed = 0
    let over = false
    const call = async (number: number) => {
      while (!over) {
        const key = newKey()
        const verb =
          number % 3 === 0
            ? store.read(key, { now: NOW, deadline: within(150) })
            : number % 3 === 1
              ? store.touch(key, NOW, NOW, { now: NOW, deadline: within(150) })
              : store.deleteUser('1', { minPasswordVersionUntil: NOW }, { now: NOW, deadline: within(150) })
        await failure(Promise.resolve(verb))
        failed += 1
      }
    }
    const calls = Array.from({ length: 12 }, (_, number) => call(number))
    for (let i = 0; i < 40; i++) {
      await pause(50)
      most = Math.max(most, await connections('crowd'))
    }
    over = true
    await Promise.all(calls)
    await release()
    expect(failed).toBeGreaterThan(50)
    expect(most).toBeLessThanOrEqual(atMost)
    await until('an answer', async () =>
      expect(await store.read(newKey(), { now: NOW, deadline: within(1000) })).toBe(null),
    )
    await until('the end of what was left behind', async () =>
      expect(await connections('crowd')).toBeLessThanOrEqual(5),
    )
    expect(await direct.read(newKey(), { now: NOW })).toBe(null)
  })

  it('keeps nothing of 30,000 gets that were given up while the network stalls', async () => {
    const { open, proxy } = get()
    const store = open(5)
    await store.read(newKey(), { now: NOW })
    const wave = () =>
      Promise.all(
        Array.from({ length: 1000 }, async () => store.read(newKey(), { now: NOW, deadline: within(60) })).map(read =>
          read.catch(() => {}),
        ),
      )
    proxy.stall()
    await wave()
    collectGarbage()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < 30; i++) await wave()
    await pause(10)
    collectGarbage()
    const kept = (process.memoryUsage().heapUsed - before) / 1e6
    await proxy.heal()
    if (process.env.COATCHECK_LONG === '1') console.log(`kept of 30,000 gets: ${kept.toFixed(1)} MB`)
    expect(kept).toBeLessThan(5)
    await until('an answer', async () =>
      expect(await store.read(newKey(), { now: NOW, deadline: within(1000) })).toBe(null),
    )
  }, 60_000)

  it('hears an answer that came in time while the event loop was blocked', async () => {
    // Without the proxy, which runs in this event loop too: an answer would pass it too late.
    const { direct: store } = get()
    await store.read(newKey(), { now: NOW })
    const answer = store.read(newKey(), { now: NOW, deadline: within(200) })
    // So long that the statement is on its way, and nothing has come back.
    await new Promise(resolve => setImmediate(resolve))
    for (const end = within(500); performance.now() < end; );
    expect(await answer).toBe(null)
  })
}

describeEngine('postgresql', 'what was given up at PostgreSQL', () => {
  let server: PostgresServer
  let proxy: FaultProxy
  let admin: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    proxy = await startProxy(server.port)
    admin = server.pool()
    await new PostgresStore(admin).migrate()
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.stop()
  })
  const openPool = (max: number, name?: string) =>
    server.pool({
      connectionString: server.url().replace(String(server.port), String(proxy.port)),
      max,
      ...(name === undefined ? {} : { application_name: name }),
    })
  const openSql = (max: number, name?: string) =>
    server.postgresJs({
      port: proxy.port,
      max,
      ...(name === undefined ? {} : { connection: { application_name: name } }),
    })
  const engine = {
    get direct() {
      return new PostgresStore(admin)
    },
    get proxy() {
      return proxy
    },
    atMost: 10,
    connections: async (name: string) =>
      Number(
        (await admin.query('SELECT count(*) FROM pg_stat_activity WHERE application_name = $1', [name])).rows[0].count,
      ),
    async lockTable() {
      const client = await admin.connect()
      await client.query('BEGIN; ALTER TABLE coatcheck_sessions ADD COLUMN more int')
      return async () => {
        await client.query('ROLLBACK')
        client.release()
      }
    },
  }
  const drivers = [
    ['pg', 'COMMIT\0', (max: number, name?: string) => new PostgresStore(openPool(max, name))],
    ['postgres', 'commit\0', (max: number, name?: string) => new PostgresStore(openSql(max, name))],
  ] as const
  describe.each(drivers)('through %s', (driver, commit, open) => {
    // The same users for each driver: the minimum versions of one are not for the next.
    beforeAll(() => admin.query('DELETE FROM coatcheck_sessions; DELETE FROM coatcheck_sessions_users'))
    // The connections of the other driver's test may still be there.
    const nameOf = (name: string) => `${name} of ${driver}`
    givenUp(() => ({
      ...engine,
      commit,
      open: (max, name) => open(max, name && nameOf(name)),
      connections: name => engine.connections(nameOf(name)),
    }))
  })

  it('lets who comes later wait as long as others for a connection, whenever the pool refuses those that gave up', async () => {
    const pool = server.pool({ max: 1, connectionTimeoutMillis: 1500 })
    const store = new PostgresStore(pool)
    const one = record({ userId: '7901' })
    await store.create(one, {}, { now: NOW })
    const taken = await pool.connect()
    const gaveUp = failure(store.read(one.key, { now: NOW, deadline: within(700) }))
    await pause(1000)
    const later = store.read(one.key, { now: NOW, deadline: soon() })
    await gaveUp
    await pause(800)
    taken.release()
    expect(await later).toMatchObject({ key: one.key })
  })

  it('gives no connection back whose statement was given up: a cancel that comes late would meet the next statement', async () => {
    const pool = openPool(1)
    const store = new PostgresStore(pool)
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const client = await admin.connect()
    await client.query('BEGIN; LOCK TABLE coatcheck_sessions')
    try {
      const before = await pid()
      await failure(store.read(newKey(), { now: NOW, deadline: within(100) }))
      expect(await pid()).not.toBe(before)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  })

  it('keeps connections whose transaction failed, however little time was left for its ROLLBACK', async () => {
    const table = 'checked_sessions'
    const pool = openPool(1)
    const store = new PostgresStore(pool, { table })
    await store.migrate()
    await admin.query(`ALTER TABLE ${table} ADD CHECK (user_name <> 'Grace Hopper')`)
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const before = await pid()
    const limit = { max: 1, onLimit: 'end-oldest' } as const
    const logIn = (userName: string, deadline: number) =>
      store.create(record({ userName }), { limit }, { now: NOW, deadline })
    await logIn('ada', within(5000))
    proxy.slow(100)
    try {
      const begun = performance.now()
      await logIn('ada', within(5000))
      // As long as from the first statement to the COMMIT: in its place there is a ROLLBACK.
      const took = performance.now() - begun
      for (const more of [50, 1000]) {
        await failure(logIn('Grace Hopper', within(took + more)))
        expect(await pid()).toBe(before)
      }
    } finally {
      proxy.slow(0)
    }
  })

  it('survives a connection that the server ends in the moment in which it becomes ready', () =>
    survive(async () => {
      const ready = Buffer.from('Z\0\0\0\x05I')
      const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
      const ended = Buffer.alloc(5 + fields.length, 'E')
      ended.writeInt32BE(4 + fields.length, 1)
      ended.write(fields, 5, 'latin1')
      const store = new PostgresStore(openPool(1))
      for (let i = 0; i < 3; i++) {
        proxy.endAfter(ready, ended)
        expect(await failure(store.read(newKey(), { now: NOW, deadline: soon() }))).toMatchObject({
          outcome: 'not-applied',
        })
      }
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('survives the end of idle connections, though the application does not listen to its pool', () =>
    survive(async () => {
      const pool = openPool(2, 'idle')
      pool.removeAllListeners('error')
      const store = new PostgresStore(pool)
      const another = new PostgresStore(pool)
      expect(pool.listenerCount('error')).toBe(1)
      await Promise.all([store.read(newKey(), { now: NOW }), another.read(newKey(), { now: NOW })])
      expect(pool.idleCount).toBe(2)
      const ended = await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'idle'",
      )
      expect(ended.rowCount).toBe(2)
      await until('the pool to hear of it', async () => expect(pool.totalCount).toBe(0))
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('tells clients neither host nor table, and logs no value of a statement', async () => {
    const table = 'strict_sessions'
    const store = new PostgresStore(admin, { table })
    expect((await failure(store.read(newKey(), { now: NOW }))).message).not.toContain(table)
    await store.migrate()
    await admin.query(`ALTER TABLE ${table} ADD CHECK (user_name <> 'Grace Hopper')`)
    const one = record({ userName: 'Grace Hopper', data: '{"cart":"a secret book"}' })
    const error = await failure(store.create(one, {}, { now: NOW }))
    expect(error.message).toBe('the session store failed in create')
    expect(error.cause).toMatchObject({ code: '23514', table, message: expect.stringContaining('check constraint') })
    expect(leaked(error, [one.key, one.writeId, 'Grace Hopper', 'a secret book'])).toBe(null)
    const away = new PostgresStore(server.pool({ connectionString: 'postgres://ada:pw@127.0.0.1:1/x' }))
    const refused = await failure(away.read(newKey(), { now: NOW }))
    expect(refused.message).toBe('the session store failed in read')
    expect(refused.cause).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })
})

describeEngine('mariadb', 'what was given up at MariaDB', () => {
  let server: MariadbServer
  let proxy: FaultProxy
  let admin: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb()
    proxy = await startProxy(server.port)
    admin = server.pool()
    await new MysqlStore(admin).migrate()
    await admin.query("CREATE USER crowd@'127.0.0.1'")
    await admin.query("GRANT ALL ON test.* TO crowd@'127.0.0.1'")
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.stop()
  })
  const openPool = (max: number, user = 'root') =>
    server.pool({ uri: server.url({ user }).replace(String(server.port), String(proxy.port)), connectionLimit: max })
  givenUp(() => ({
    direct: new MysqlStore(admin),
    proxy,
    commit: '\x03COMMIT',
    atMost: 15,
    open: (max, name) => new MysqlStore(openPool(max, name)),
    connections: async name =>
      Number(
        (
          (await admin.query('SELECT count(*) AS n FROM information_schema.processlist WHERE user = ?', [name])) as any
        )[0][0].n,
      ),
    async lockTable() {
      const connection = await admin.getConnection()
      await connection.query('LOCK TABLES coatcheck_sessions WRITE, coatcheck_sessions_users WRITE')
      return async () => {
        await connection.query('UNLOCK TABLES')
        connection.release()
      }
    },
  }))

  it('leaves a connection the wait_timeout that the application has set meanwhile', async () => {
    const pool = server.pool({ connectionLimit: 1 })
    const store = new MysqlStore(pool)
    await store.read(newKey(), { now: NOW })
    await pool.query('SET SESSION wait_timeout = 77')
    await store.create(record({ userId: '7902' }), { limit: { max: 1, onLimit: 'end-oldest' } }, { now: NOW })
    const [rows] = await pool.query<mysql.RowDataPacket[]>('SELECT @@SESSION.wait_timeout AS idle')
    expect(rows).toEqual([{ idle: 77 }])
  })

  it('survives a connection that the server ends in the moment in which it becomes ready', () =>
    survive(async () => {
      // The end of the OK packet: the schema is now 'test'.
      const ready = Buffer.from('\x07\x01\x05\x04test')
      const message = '#08S01Server shutdown in progress'
      const ended = Buffer.concat([Buffer.from([3 + message.length, 0, 0, 0, 0xff, 0x1d, 0x04]), Buffer.from(message)])
      const store = new MysqlStore(openPool(1))
      for (let i = 0; i < 3; i++) {
        proxy.endAfter(ready, ended)
        await failure(store.read(newKey(), { now: NOW, deadline: soon() }))
      }
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('survives a connection that its server ends while it is idle, and whose network fails in the same moment', () =>
    survive(async () => {
      const sockets: Socket[] = []
      const stream = () => {
        sockets.push(connect(proxy.port, '127.0.0.1'))
        return sockets.at(-1)
      }
      const pool = server.pool({ connectionLimit: 1, stream })
      let errors = 0
      pool.on('connection', connection =>
        // The first error. mysql2's own listener is gone after it.
        (connection as unknown as EventEmitter).once('error', () => {
          errors++
          sockets[0]?.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
        }),
      )
      const store = new MysqlStore(pool)
      await store.read(newKey(), { now: NOW })
      // What MySQL 8 says before it closes an idle connection; MariaDB says nothing.
      const message = '#HY000The client was disconnected by the server because of inactivity.'
      const words = Buffer.concat([Buffer.from([3 + message.length, 0, 0, 0, 0xff, 0xbf, 0x0f]), Buffer.from(message)])
      proxy.endAfter(Buffer.from([0xfe, 0, 0, 2, 0]), words)
      await Promise.resolve(store.read(newKey(), { now: NOW })).catch(() => {})
      await until('the first error', async () => expect(errors).toBe(1))
      await pause(50)
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('tells clients neither host nor table, and logs no value of a statement', async () => {
    const table = 'strict_sessions'
    const store = new MysqlStore(admin, { table })
    expect((await failure(store.read(newKey(), { now: NOW }))).message).not.toContain(table)
    await store.migrate()
    await admin.query(`ALTER TABLE ${table} MODIFY user_name INT`)
    const one = record({ userName: 'Grace Hopper', data: '{"cart":"a secret book"}' })
    const error = await failure(store.create(one, {}, { now: NOW }))
    expect(error.message).toBe('the session store failed in create')
    expect(leaked(error, [one.key, one.writeId, 'Grace Hopper', 'a secret book'])).toBe(null)
    const away = new MysqlStore(server.pool({ uri: 'mysql://ada:pw@127.0.0.1:1/x' }))
    const refused = await failure(away.read(newKey(), { now: NOW }))
    expect(refused.message).toBe('the session store failed in read')
    expect(refused.cause).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })

  it('ends a given-up statement also at a server that has only just started, and counts its life in whole seconds', async () => {
    const young = await startMariadb()
    try {
      const one = record({ userId: '93' })
      const before = new MysqlStore(young.pool())
      await before.migrate()
      await before.create(one, {}, { now: NOW })
      await young.kill()
      await young.restart()
      const admin = young.pool()
      const store = new MysqlStore(young.pool())
      const holder = await admin.getConnection()
      await holder.query('START TRANSACTION')
      await holder.query(`SELECT * FROM coatcheck_sessions WHERE id = '${one.key}' FOR UPDATE`)
      const edit = { data: '"late"', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
      // It says 0 for all of its first second.
      for (let turn = 0; turn < 6; turn++) {
        await failure(store.update(one.key, 1, edit, { now: NOW, deadline: within(200) }))
        await until(
          'no statement of ours at the server',
          async () => {
            const [rows] = (await admin.query('SHOW FULL PROCESSLIST')) as any
            expect(rows.filter(({ Info }: any) => String(Info).startsWith('UPDATE'))).toEqual([])
          },
          { timeout: 1500 },
        )
      }
      await holder.query('ROLLBACK')
      holder.release()
    } finally {
      await young.stop()
    }
  }, 60_000)

  it('kills no statement at another server that has taken over the address', async () => {
    const other = await startMariadb()
    const toOther = other.pool({ connectionLimit: 1 })
    try {
      await new MysqlStore(toOther).migrate()
      const pool = openPool(2)
      const store = new MysqlStore(pool)
      const one = record({ userId: '90' })
      await store.create(one, {}, { now: NOW })
      const holder = await admin.getConnection()
      await holder.query('START TRANSACTION')
      await holder.query(`SELECT * FROM coatcheck_sessions WHERE id = '${one.key}' FOR UPDATE`)
      // The number that the server gave to our connection, given to a stranger's at the other server.
      const [[{ id }]] = (await pool.query('SELECT CONNECTION_ID() AS id')) as any
      const strangers: mysql.PoolConnection[] = []
      const crowd = other.pool({ connectionLimit: 500 })
      let stranger: mysql.PoolConnection | undefined
      while (!stranger) {
        const next = await crowd.getConnection()
        strangers.push(next)
        expect(next.threadId, 'the other server has given out that number before').toBeLessThanOrEqual(id)
        if (next.threadId === id) stranger = next
      }
      // It runs the same statement as we do.
      const theirs = record({ key: one.key, userId: '91' })
      const same = new MysqlStore({ getConnection: async () => stranger } as never)
      await same.create(theirs, {}, { now: NOW })
      const blocker = await toOther.getConnection()
      await blocker.query('START TRANSACTION')
      await blocker.query(`SELECT * FROM coatcheck_sessions WHERE id = '${one.key}' FOR UPDATE`)
      const edit = { data: '"kept"', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
      const kept = same.update(one.key, 1, edit, { now: NOW, deadline: within(20_000) })
      proxy.redirect(other.port)
      await failure(store.update(one.key, 1, edit, { now: NOW, deadline: within(300) }))
      await pause(700)
      await blocker.query('ROLLBACK')
      blocker.release()
      expect(await kept).toBe('updated')
      await holder.query('ROLLBACK')
      holder.release()
    } finally {
      proxy.redirect(server.port)
      await other.stop()
    }
  }, 60_000)
})
