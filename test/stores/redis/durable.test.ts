// Redis as those run it who may lose nothing: a log that is on the disk before a write is acknowledged, and a replica that
// has it as well. And Redis over TLS, with the connection of the store's own that `WAIT` needs.

import { modelTest } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { freePort, until } from '../../services/process.ts'
import { type RedisServer, startRedis } from '../../services/redis.ts'
import { type Certificate, makeCertificate } from '../../services/tls.ts'
import { type OpenClient, STANDALONE } from '../../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0 } from '../../support/redis/records.ts'

const ALWAYS = ['--appendonly', 'yes', '--appendfsync', 'always']

const follow = (master: RedisServer, replica: RedisServer) =>
  until('the replica following', async () => {
    expect(await replica.cli('INFO', 'replication')).toMatch(/master_link_status:up/)
    expect(await master.cli('INFO', 'replication')).toMatch(/connected_slaves:1/)
  })

describeEngine('redis', 'a Redis that writes each command to its log, with a replica that is waited for', () => {
  let master: RedisServer
  let replica: RedisServer
  beforeAll(async () => {
    master = await startRedis([...ALWAYS, '--repl-diskless-sync-delay', '0'])
    replica = await startRedis([...ALWAYS, '--replicaof', `127.0.0.1 ${master.port}`])
    await follow(master, replica)
  })
  afterAll(async () => {
    await master?.stop()
    await replica?.stop()
  })

  it.each(['node-redis 6', 'ioredis 6'])('keeps the contract with %s', async name => {
    const { client, close } = await STANDALONE[name]!(master.url)
    const store = new RedisStore(client, { waitReplicas: 1 })
    await modelTest(fc, async () => store, undefined, { runs: 10 })
    await store.close()
    await close()
  })

  it('has after a crash of both servers what was acknowledged before, and nothing that had ended', async () => {
    await master.cli('FLUSHALL')
    const { client, close } = await STANDALONE['ioredis 6']!(master.url)
    const store = new RedisStore(client, { waitReplicas: 1 })
    const records = Array.from({ length: 60 }, (_, i) => recordOf(store, `${i % 20}`))
    await Promise.all(records.map(record => store.create(record, {}, { now: T0, deadline: soon() })))
    const [ended, everywhere, kept] = [
      records.slice(0, 10),
      records.filter((_, i) => i % 20 === 19),
      records.slice(10, 19),
    ]
    await Promise.all(ended.map(({ key }) => store.delete(key, { now: T0, deadline: soon() })))
    await store.deleteUser(
      '19',
      { minPasswordVersion: 1, minPasswordVersionUntil: T0 + HOUR },
      { now: T0, deadline: soon() },
    )
    await Promise.all([master.kill(), replica.kill()])
    await store.close()
    await close()
    for (const server of [master, replica]) {
      // Each by itself, as if the other were gone for good.
      await server.restart(server === replica ? ['--replicaof', 'NO ONE'] : [])
      const after: OpenClient = await STANDALONE['ioredis 6']!(server.url)
      const heir = new RedisStore(after.client)
      for (const { key } of [...ended, ...everywhere]) expect(await heir.read(key, { now: T0 })).toBeNull()
      for (const { key } of kept) expect(await heir.read(key, { now: T0 })).not.toBeNull()
      expect(await heir.create(recordOf(heir, '19'), {}, { now: T0 })).toMatchObject({ outcome: 'stale-login' })
      await after.close()
    }
  })
})

describeEngine('redis', 'a Redis over TLS', () => {
  let server: RedisServer
  let replica: RedisServer
  let url: string
  let certificate: Certificate
  let stranger: Certificate
  beforeAll(async () => {
    certificate = makeCertificate(['localhost'])
    stranger = makeCertificate(['localhost'])
    const port = await freePort()
    const { certFile, keyFile } = certificate
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
    server = await startRedis(['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files])
    replica = await startRedis(['--replicaof', `127.0.0.1 ${server.port}`])
    url = `rediss://localhost:${port}`
    await follow(server, replica)
  })
  afterAll(async () => {
    await server?.stop()
    await replica?.stop()
    certificate?.remove()
    stranger?.remove()
  })

  const clients: Record<string, (ca: string) => Promise<OpenClient>> = {
    async 'node-redis'(ca) {
      const client = createClient({ url, socket: { tls: true, ca } })
      client.on('error', () => {})
      const connecting = client.connect().catch(() => {})
      await Promise.race([connecting, new Promise(resolve => client.once('error', resolve))])
      return { client, close: () => client.destroy() }
    },
    async ioredis(ca) {
      const client = new Redis(url, { tls: { ca } })
      await new Promise(resolve => client.once('ready', resolve).once('error', resolve))
      client.on('error', () => {})
      return { client, close: () => client.disconnect() }
    },
  }

  it.each(Object.keys(clients))('keeps the contract with %s, and waits for the replica', async name => {
    const { client, close } = await clients[name]!(certificate.cert)
    const store = new RedisStore(client, { waitReplicas: 1 })
    await modelTest(fc, async () => store, undefined, { runs: 10 })
    const { wait } = await server.commandStats()
    expect(wait).toBeGreaterThan(0)
    await server.cli('CONFIG', 'RESETSTAT')
    await store.close()
    await close()
  })

  it.each(Object.keys(clients))('calls a certificate of another authority an outage with %s', async name => {
    const good = await clients[name]!(certificate.cert)
    const store = new RedisStore(good.client)
    const record = recordOf(store, '7')
    await store.create(record, {}, { now: T0 })
    const bad = await clients[name]!(stranger.cert)
    const mistaken = new RedisStore(bad.client)
    const call = { now: T0, deadline: performance.now() + 500 }
    await expect(mistaken.read(record.key, call)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    await expect(mistaken.delete(record.key, call)).rejects.toMatchObject({ outcome: 'not-applied' })
    expect(await store.read(record.key, { now: T0 })).toMatchObject({ key: record.key })
    await bad.close()
    await good.close()
  })
})
