// Connections of mysql2 that end, and statements that go on without them.
import type { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { MysqlStore } from 'coatcheck/stores/mysql'
import type mysql from 'mysql2/promise'
import { expect, it } from 'vitest'
import { failure, survive } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startMariadb } from '../../support/services/mariadb.ts'
import { until } from '../../support/services/process.ts'
import { mariadbOf } from '../databases.ts'
import { givenUp, locksOfMariadb } from '../locks.ts'
import { proxiedMariadb } from '../proxied.ts'
import { call, change, NOW, newKey, record } from '../records.ts'

const edit = change()
const rowOf = (key: string) => `SELECT * FROM coatcheck_sessions WHERE id = '${key}' FOR UPDATE`
/** An error packet of the server, after which it closes the connection. */
const farewell = (errno: number, message: string) => {
  const packet = Buffer.from([3 + message.length, 0, 0, 0, 0xff, errno & 0xff, errno >> 8])
  return Buffer.concat([packet, Buffer.from(message)])
}

describeEngine('mariadb', 'a connection of mysql2', () => {
  const own = mariadbOf(proxiedMariadb)

  it('keeps the wait_timeout that the application has set meanwhile', async () => {
    const pool = own.server.pool({ connectionLimit: 1 })
    const store = new MysqlStore(pool)
    await store.read(newKey(), call())
    await pool.query('SET SESSION wait_timeout = 77')
    await store.deleteUser('7902', { minPasswordVersionUntil: NOW }, call())
    const [rows] = await pool.query<mysql.RowDataPacket[]>('SELECT @@SESSION.wait_timeout AS idle')
    expect(rows).toEqual([{ idle: 77 }])
  })

  it('ends no process where the server ends it in the moment in which it becomes ready', () =>
    survive(async () => {
      // The end of the OK packet: the schema is now 'test'.
      const ready = Buffer.from('\x07\x01\x05\x04test')
      const store = new MysqlStore(own.server.pool({ uri: own.server.proxiedUrl(), connectionLimit: 1 }))
      for (let i = 0; i < 3; i++) {
        own.server.proxy.endAfter(ready, farewell(1053, '#08S01Server shutdown in progress'))
        await failure(store.read(newKey(), call()))
      }
      expect(await store.read(newKey(), call())).toBe(null)
    }))

  it('ends no process where its server ends it while it is idle, and its network fails in the same moment', () =>
    survive(async () => {
      const sockets: Socket[] = []
      const stream = () => {
        sockets.push(connect(own.server.proxy.port, '127.0.0.1'))
        return sockets.at(-1)
      }
      const pool = own.server.pool({ connectionLimit: 1, stream })
      let errors = 0
      pool.on('connection', connection =>
        // The first error. mysql2's own listener is gone after it.
        (connection as unknown as EventEmitter).once('error', () => {
          errors++
          sockets[0]?.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
        }),
      )
      const store = new MysqlStore(pool)
      await store.read(newKey(), call())
      // What MySQL 8 says before it closes an idle connection; MariaDB says nothing.
      const idle = farewell(4031, '#HY000The client was disconnected by the server because of inactivity.')
      own.server.proxy.endAfter(Buffer.from([0xfe, 0, 0, 2, 0]), idle)
      await Promise.resolve(store.read(newKey(), call())).catch(() => {})
      await until('the first error', async () => expect(errors).toBe(1))
      expect(await store.read(newKey(), call())).toBe(null)
    }))

  it('leaves no given-up statement at a server that has only just started, and counts its life in whole seconds', async () => {
    const one = record({ userId: '93' })
    const before = new MysqlStore(own.server.pool({ connectionLimit: 1 }))
    await before.create(one, call())
    await own.server.kill()
    await own.server.restart()
    const store = new MysqlStore(own.server.pool())
    const release = await own.locks.hold(rowOf(one.key))
    // It says 0 for all of its first second.
    for (let turn = 0; turn < 4; turn++) {
      await givenUp(when => store.update(one.key, 1, edit, when))
      await own.locks.nothingWaits()
    }
    await release()
  })

  it('kills no statement at its server that was started again, and has given out the number to somebody else', async () => {
    const { server, locks } = own
    const pool = server.pool({ uri: server.proxiedUrl(), connectionLimit: 1 })
    const store = new MysqlStore(pool)
    const one = record({ userId: '94' })
    await store.create(one, call())
    const [[row]] = await pool.query<mysql.RowDataPacket[]>('SELECT CONNECTION_ID() AS id')
    const release = await locks.hold(rowOf(one.key))
    // The server tells its age in whole seconds, so that the connection has to be older than two.
    const ages = server.pool()
    const age = async () => Number((await ages.query<mysql.RowDataPacket[]>("SHOW STATUS LIKE 'Uptime'"))[0][0]!.Value)
    const met = await age()
    await until('an old connection', async () => expect(await age()).toBeGreaterThan(met + 3))
    // Nothing listens there: no connection takes the place of this one, and ends its statement.
    server.proxy.redirect(1)
    await givenUp(when => store.update(one.key, 1, edit, when))
    await server.kill()
    await release().catch(() => {})
    await server.restart()
    server.proxy.redirect(server.port)
    const crowd = server.pool({ connectionLimit: 500 })
    let stranger: mysql.PoolConnection | undefined
    while (stranger?.threadId !== row!.id) {
      stranger = await crowd.getConnection()
      expect(stranger.threadId, 'the server has given out that number before').toBeLessThanOrEqual(row!.id)
    }
    const free = await locks.hold(rowOf(one.key))
    const kept = new MysqlStore({ getConnection: async () => stranger } as never).update(one.key, 1, edit, call())
    await until('the statement of the stranger', async () => expect(await locks.waiting()).toBe(1))
    expect(await store.read(newKey(), call())).toBeNull()
    expect(await locks.waiting()).toBe(1)
    await free()
    expect(await kept).toBe('updated')
  })

  it('kills no statement at another server that has taken over the address', async () => {
    const other = await startMariadb()
    const toOther = other.pool()
    const elsewhere = locksOfMariadb(toOther)
    try {
      await new MysqlStore(toOther).migrate()
      const pool = own.server.pool({ uri: own.server.proxiedUrl(), connectionLimit: 2 })
      const store = new MysqlStore(pool)
      const one = record({ userId: '90' })
      await store.create(one, call())
      const release = await own.locks.hold(rowOf(one.key))
      // The number that the server gave to our connection, given to a stranger's at the other server.
      const [[row]] = await pool.query<mysql.RowDataPacket[]>('SELECT CONNECTION_ID() AS id')
      const crowd = other.pool({ connectionLimit: 500 })
      let stranger: mysql.PoolConnection | undefined
      while (stranger?.threadId !== row!.id) {
        stranger = await crowd.getConnection()
        expect(stranger.threadId, 'the other server has given out that number before').toBeLessThanOrEqual(row!.id)
      }
      // It runs the same statement as we do.
      const same = new MysqlStore({ getConnection: async () => stranger } as never)
      await same.create(record({ key: one.key, userId: '91' }), call())
      const free = await elsewhere.hold(rowOf(one.key))
      const kept = same.update(one.key, 1, edit, call())
      own.server.proxy.redirect(other.port)
      await givenUp(when => store.update(one.key, 1, edit, when))
      // Both are there once the one is free that was made in place of ours.
      for (const each of await Promise.all([pool.getConnection(), pool.getConnection()])) each.release()
      expect(await elsewhere.waiting()).toBe(1)
      await free()
      expect(await kept).toBe('updated')
      await release()
    } finally {
      own.server.proxy.redirect(own.server.port)
      await other.stop()
    }
  })
})
