// Old sessions are taken over once on each kind of database: the marks are records without a user, and the IDs are derived.

import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import { expect, it } from 'vitest'
import type { Store } from '../../src/contract/store.ts'
import { describeEngine, type EngineName } from '../services/engines.ts'
import { startMariadb } from '../services/mariadb.ts'
import { startPostgres } from '../services/postgres.ts'
import { startRedisCluster } from '../services/redis.ts'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'
import { connectSid, cookieAt, replacement } from '../support/old-sessions.ts'
import { CLUSTER } from '../support/redis/clients.ts'

type Opened = { store: Store & { migrate?(): Promise<void> }; close(): unknown }
const ENGINES: Record<string, { engine: EngineName; open(): Promise<Opened> }> = {
  'Redis Cluster': {
    engine: 'redis',
    async open() {
      const cluster = await startRedisCluster()
      const { client, close } = await CLUSTER['node-redis 6 cluster']!(cluster.addresses)
      return { store: new RedisStore(client), close: async () => [await close(), await cluster.stop()] }
    },
  },
  PostgreSQL: {
    engine: 'postgresql',
    async open() {
      const server = await startPostgres()
      return { store: new PostgresStore(server.pool()), close: server.stop }
    },
  },
  MariaDB: {
    engine: 'mariadb',
    async open() {
      const server = await startMariadb()
      return { store: new MysqlStore(server.pool()), close: server.stop }
    },
  },
  SQLite: {
    engine: 'libsql',
    async open() {
      const { file, remove } = sqliteFile()
      const database = openSqlite('libsql', file)
      return { store: new SqliteStore(database), close: () => [database.close(), remove()] }
    },
  },
}

for (const [name, { engine, open }] of Object.entries(ENGINES))
  describeEngine(engine, `sessions of another library that move to ${name}`, () => {
    it('are taken over once by parallel requests on three nodes, and a log-out is final', async () => {
      const { store, close } = await open()
      await store.migrate?.()
      const service = replacement(store)
      try {
        const nodes = [1, 2, 3].map(() => service.node({ manager: { storeTimeout: '20s' } }))
        const users = Array.from({ length: 10 }, (_, at) => 2n ** 64n - 1n - BigInt(at))
        for (const id of users)
          service.old.put(`sid ${id}`, { cookie: cookieAt(service.clock.now), userId: String(id), name: `user ${id}` })
        const asked = users.flatMap(id => nodes.map(node => node.ask(connectSid(`sid ${id}`))))
        const names = (await Promise.all(asked)).map(answer => answer.name)
        expect(names).toEqual(users.flatMap(id => nodes.map(() => `user ${id}`)))
        expect([...service.old.records]).toEqual([])
        const { sessions } = nodes[0]!
        for (const id of users) expect(await sessions.list(id)).toHaveLength(1)
        expect(await sessions.count()).toBe(users.length)
        // A late request with the old cookie beside and after the log-out.
        const [gone, stays] = users
        const leaving = await nodes[1]!.ask(connectSid(`sid ${gone}`))
        await leaving.visit.logOut()
        for (const node of nodes) expect((await node.ask(connectSid(`sid ${gone}`))).name).toBe(null)
        expect(await sessions.list(gone!)).toEqual([])
        expect(await sessions.list(stays!)).toHaveLength(1)
        expect(service.told).toEqual([])
      } finally {
        await service.close()
        await close()
      }
    })
  })
