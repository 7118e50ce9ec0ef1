// What only Postgres.js does: its own ways with types, connections that end, and statements that wait for one.
import { connect, createServer } from 'node:net'
import { PostgresStore } from 'coatcheck/stores/postgres'
import postgres from 'postgres'
import { beforeAll, describe, expect, it } from 'vitest'
import { watched } from '../../examples/watched-socket.mjs'
import { within } from '../support/deadlines.ts'
import { failure, survive } from '../support/failure.ts'
import { portOf } from '../support/listening.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { startProxy } from '../support/services/proxy.ts'
import { postgresOf } from './databases.ts'
import { isExact } from './exact.ts'
import { givenUp } from './locks.ts'
import { call, change, isLive, NOW, newKey, record } from './records.ts'
import { partOfTheSuite } from './suite.ts'

describeEngine('postgresql', 'PostgresStore through Postgres.js', () => {
  const own = postgresOf(sharedPostgres)
  const end = (name: string) =>
    own.admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [name])

  describe('the suite', () => {
    let stores: [PostgresStore, PostgresStore]
    beforeAll(() => {
      const make = () => new PostgresStore(own.server.postgresJs({ max: 10 }))
      stores = [make(), make()]
    })
    partOfTheSuite(() => ({ stores, run: sql => own.admin.query(sql) }))
  })

  it('keeps user IDs and times exact, whatever the application has told its client of types and names', async () => {
    const clients = [
      { types: { bigint: postgres.BigInt } },
      { types: { numeric: { to: 1700, from: [1700, 20, 25], serialize: String, parse: Number } } },
      { transform: { ...postgres.camel, undefined: null, value: { from: () => 'changed', to: undefined } } },
      { fetch_types: false, prepare: false },
      { fetch_types: false, max: 1 },
      { debug: () => {} },
    ] as unknown as Parameters<PostgresDatabase['postgresJs']>[0][]
    for (const [place, client] of clients.entries()) {
      const store = new PostgresStore(own.server.postgresJs(client), { table: `client_${place}` })
      await store.migrate()
      await isExact(store)
    }
  })

  it('refuses a sql that is not the whole pool', async () => {
    const sql = own.server.postgresJs()
    const reserved = await sql.reserve()
    const expected = /expects the sql that postgres\(\) gives, not that of a transaction or of reserve\(\)/
    expect(() => new PostgresStore(reserved as never)).toThrow(expected)
    reserved.release()
    await sql.begin(async inside => {
      expect(() => new PostgresStore(inside as never)).toThrow(expected)
    })
  })

  it('survives connections that end inside a transaction, and takes new ones', () =>
    survive(async () => {
      const sql = own.server.postgresJs({ max: 2, connection: { application_name: 'inside' }, backoff: () => 0.02 })
      const store = new PostgresStore(sql)
      const one = record({ userId: '301' })
      await store.create(one, call())
      for (let round = 0; round < 3; round++) {
        const release = await own.locks.hold()
        try {
          const ending = ['301', '304'].map(user =>
            failure(store.deleteUser(user, { minPasswordVersionUntil: NOW }, call())),
          )
          await until('both transactions at the lock', async () =>
            expect(await own.locks.waiting()).toBeGreaterThanOrEqual(2),
          )
          await end('inside')
          for (const error of await Promise.all(ending)) expect(error.outcome).toBe('not-applied')
        } finally {
          await release()
        }
        const [first, second] = [newKey(), newKey()].map(key => store.read(key, call()))
        expect([await first, await second]).toEqual([null, null])
      }
      expect(await isLive(store, one.key)).toBe(true)
    }))

  it('repeats what a cancel request ended that was meant for the statement before', async () => {
    const sql = own.server.postgresJs({ max: 1, connection: { application_name: 'canceled' } })
    const store = new PostgresStore(sql)
    const one = record({ userId: '302' })
    await store.create(one, call())
    for (const use of [
      () => store.touch(one.key, NOW + 5, NOW + 9e6, call()),
      () => store.read(one.key, call()),
      () => store.deleteUser('302', { minPasswordVersionUntil: NOW }, call()),
    ]) {
      const release = await own.locks.hold()
      const answer = use()
      try {
        await until('a statement at the lock', async () => expect(await own.locks.waiting()).toBe(1))
        const { rows } = await own.admin.query(
          "SELECT pg_cancel_backend(pid) AS canceled FROM pg_stat_activity WHERE application_name = 'canceled'",
        )
        expect(rows).toEqual([{ canceled: true }])
      } finally {
        await release()
      }
      await expect(answer).resolves.toBeTruthy()
    }
  })

  it('leaves a connection that falls silent by the socket that its page has copied', async () => {
    const proxy = await startProxy(own.server.port)
    // Its types lack the socket.
    const options = { port: proxy.port, fetch_types: false, max: 1, backoff: () => 0.05, socket: watched } as object
    const sql = own.server.postgresJs(options)
    const store = new PostgresStore(sql)
    const one = record({ userId: '307' })
    await store.create(one, call())
    const before = proxy.connections()
    proxy.silence()
    const write = failure(store.touch(one.key, NOW + 1, NOW + 9e6, { now: NOW, deadline: within(2500) }))
    await until('an answer', async () =>
      expect(await store.read(one.key, { now: NOW, deadline: within(1000) })).toMatchObject({ key: one.key }),
    )
    expect(await write).toMatchObject({ outcome: 'unknown' })
    expect(proxy.connections()).toBeGreaterThan(before)
    await proxy.stop()
  })

  it('answers what comes first after the end of its idle connections', () =>
    survive(async () => {
      let closed = 0
      const onclose = () => {
        closed += 1
      }
      const connection = { application_name: 'idle' }
      const sql = own.server.postgresJs({ max: 1, connection, onclose, backoff: () => 0.02 })
      const store = new PostgresStore(sql)
      const one = record({ userId: '302' })
      await store.create(one, call())
      for (let version = 1; version < 4; version++) {
        await end('idle')
        await until('the client to hear of it', async () => expect(closed).toBe(version))
        expect(await store.update(one.key, version, change(), call())).toBe('updated')
      }
    }))

  it('cancels what was given up, again if the request is lost; if it meets no server, its caller alone is told', () =>
    survive(async () => {
      let connections = 0
      const way = createServer(client => {
        // The first one is the store's, the second its first cancel request.
        if (++connections === 2) return void client.destroy()
        const database = connect(own.server.port, '127.0.0.1')
        for (const socket of [client, database]) socket.on('error', () => {})
        client.pipe(database).pipe(client)
      })
      const store = new PostgresStore(own.server.postgresJs({ port: await portOf(way), max: 1 }))
      await store.read(newKey(), { now: NOW }) // connects: the first connection
      const release = await own.locks.hold()
      const giveUp = async () =>
        expect(await givenUp(when => store.read(newKey(), when))).toMatchObject({ outcome: 'not-applied' })
      try {
        await giveUp()
        await own.locks.nothingWaits()
        expect(connections).toBeGreaterThanOrEqual(3)
        // The connection stays, a request for another one is refused.
        way.close()
        await giveUp()
        expect(await own.locks.waiting()).toBe(1)
      } finally {
        await release()
      }
      await own.locks.nothingWaits()
      expect(await store.read(newKey(), call())).toBe(null)
    }))
})
