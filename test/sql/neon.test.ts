// Neon's serverless driver: pg over WebSockets. Here they lead to a PostgreSQL of our own.
import { createRequire } from 'node:module'
import { type AddressInfo, connect } from 'node:net'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { postgresOf } from './databases.ts'
import { givenUp } from './locks.ts'
import { call, NOW, record } from './records.ts'
import { partOfTheSuite } from './suite.ts'

const drivers = createRequire(new URL('../support/drivers/package.json', import.meta.url))

/** What Neon has before its databases: each WebSocket is a connection to the server. */
async function startProxy(port: number) {
  const { createWebSocketStream, WebSocketServer } = drivers('ws')
  const proxy = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  proxy.on('connection', (socket: unknown) => {
    const client = createWebSocketStream(socket)
    const server = connect(port, '127.0.0.1')
    for (const stream of [client, server]) stream.on('error', () => {})
    client.on('close', () => server.destroy())
    client.pipe(server).pipe(client)
  })
  await new Promise(resolve => proxy.once('listening', resolve))
  return { port: (proxy.address() as AddressInfo).port, stop: () => proxy.close() }
}

describeEngine('postgresql', 'PostgresStore through Neon', () => {
  describeEngine('other clients', 'over a WebSocket', () => {
    const own = postgresOf(sharedPostgres)
    let proxy: Awaited<ReturnType<typeof startProxy>>
    let pool: pg.Pool
    beforeAll(async () => {
      proxy = await startProxy(own.server.port)
      const { neonConfig, Pool } = drivers('@neondatabase/serverless')
      Object.assign(neonConfig, {
        webSocketConstructor: drivers('ws'),
        wsProxy: `127.0.0.1:${proxy.port}`,
        useSecureWebSocket: false,
        pipelineConnect: false,
        pipelineTLS: false,
      })
      pool = new Pool({ connectionString: own.server.url(), max: 5 })
      pool.on('error', () => {})
    })
    afterAll(async () => {
      await pool?.end()
      proxy?.stop()
    })

    partOfTheSuite(() => ({ stores: new PostgresStore(pool), run: sql => own.admin.query(sql) }), { long: false })

    it('ends at the server what was given up', async () => {
      const store = new PostgresStore(pool)
      const one = record({ userId: '42' })
      await store.create(one, { now: NOW })
      const release = await own.locks.hold()
      await givenUp(when => store.delete(one.key, when))
      await own.locks.nothingWaits().finally(release)
      expect(await store.read(one.key, call())).toEqual(one)
    })
  })
})
