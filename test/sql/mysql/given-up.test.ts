import type { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { MysqlStore } from 'coatcheck/stores/mysql'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { soon, within } from '../../support/deadlines.ts'
import { leaked } from '../../support/scan.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type MariadbServer, startMariadb } from '../../support/services/mariadb.ts'
import { until } from '../../support/services/process.ts'
import { type FaultProxy, startProxy } from '../../support/services/proxy.ts'
import { failure, survive } from '../../support/failure.ts'
import { givenUp, pause } from '../given-up.ts'
import { NOW, newKey, newWriteId, record } from '../records.ts'

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
    await store.deleteUser('7902', { minPasswordVersionUntil: NOW }, { now: NOW })
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
    const error = await failure(store.create(one, { now: NOW }))
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
      await before.create(one, { now: NOW })
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
      await store.create(one, { now: NOW })
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
      await same.create(theirs, { now: NOW })
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
