// Redis over TLS: with a certificate that the client knows, and with one of another authority.
import { modelTest } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { OpenClient } from '../support/redis/clients.ts'
import { recordOf, T0 } from '../support/redis/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { freePort } from '../support/services/process.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'

describeEngine('redis', 'a Redis over TLS', () => {
  let server: RedisServer
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
    url = `rediss://localhost:${port}`
  })
  afterAll(async () => {
    await server?.stop()
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

  it.each(Object.keys(clients))('keeps the contract with %s', async name => {
    const { client, close } = await clients[name]!(certificate.cert)
    const store = new RedisStore(client)
    await modelTest(fc, async () => store, undefined, { runs: 10 })
    await close()
  })

  it.each(Object.keys(clients))('calls a certificate of another authority an outage with %s', async name => {
    const good = await clients[name]!(certificate.cert)
    const store = new RedisStore(good.client)
    const record = recordOf(store, '7')
    await store.create(record, { now: T0 })
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
