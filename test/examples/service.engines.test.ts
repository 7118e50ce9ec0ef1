// The service as its operators run it: several processes on one store, restarted now and then, on every kind of store.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Client, PASSWORD, type Service, startExample } from '../support/example-service.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { freePort, until } from '../support/services/process.ts'
import { sharedRedisCluster, startRedis } from '../support/services/redis.ts'
import { DATABASES as SHARED } from '../support/services/shared-databases.ts'
import { makeCertificate } from '../support/services/tls.ts'

interface Database {
  readonly url: string
  readonly env?: Record<string, string>
  stop(): unknown
}

const DATABASES: readonly { name: string; engine: EngineName; open(): Promise<Database> }[] = [
  ...SHARED,
  {
    name: 'Redis over TLS, with the certificate authority of the operator',
    engine: 'redis',
    async open() {
      const { certFile, keyFile, remove } = makeCertificate(['localhost'])
      const port = await freePort()
      const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
      const server = await startRedis(['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files])
      const stop = () => server.stop().then(remove)
      return { url: `rediss://localhost:${port}`, env: { NODE_EXTRA_CA_CERTS: certFile }, stop }
    },
  },
  {
    name: 'Redis Cluster',
    engine: 'redis',
    async open() {
      const cluster = await sharedRedisCluster()
      const hosts = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
      return { url: `redis+cluster://${hosts}`, stop: cluster.stop }
    },
  },
]

/** The demo users take the second in which a password was set as its version. */
const nextSecond = () => {
  const second = () => Math.floor(Date.now() / 1000)
  const now = second()
  return until('the next second', () => expect(second()).toBeGreaterThan(now))
}

describeEngine('redis', 'a service whose Redis is gone', () => {
  it('says why in its log, in a line for each failure', async () => {
    const redis = await startRedis()
    const service = await startExample('server.mjs', { STORE_URL: redis.url })
    const ada = new Client(service.url)
    await ada.login()
    await redis.stop()
    const { status } = await ada.send('GET', '/profile')
    await service.stop()
    expect(status).toBe(503)
    expect(service.output()).toMatch(/^store: ERR_SESSION_STORE: read: the store failed; .+$/m)
    expect(service.output()).not.toContain('    at ')
  })
})

for (const { name, engine, open } of DATABASES)
  describeEngine(engine, `two service processes on ${name}`, () => {
    let database: Database
    let services: Service[]
    const startService = () => startExample('server.mjs', { STORE_URL: database.url, ...database.env })
    const on = (index: 0 | 1, from?: Client) => {
      const client = new Client(services[index]!.url)
      for (const [cookie, value] of from?.cookies ?? []) client.cookies.set(cookie, value)
      return client
    }

    beforeAll(async () => {
      database = await open()
      services = await Promise.all([startService(), startService()])
    }, 240_000)
    afterAll(async () => {
      await Promise.all((services ?? []).map(service => service.stop()))
      await database?.stop()
    })

    it('share sessions, devices and remember tokens: a login on one, a profile and a logout on the other', async () => {
      const first = on(0)
      expect((await first.login('max', PASSWORD, true)).status).toBe(200)
      const second = on(1, first)
      expect((await second.send('GET', '/profile')).text.trim()).toBe('{"id":18446744073709551615,"name":"max"}')
      const remembered = on(1, first)
      remembered.cookies.delete('session_id')
      expect(await remembered.whoami()).toBe('max')
      expect((await second.send('GET', '/sessions')).body).toHaveLength(2)
      await second.send('POST', '/logout')
      expect([await first.whoami(), await remembered.whoami()]).toEqual([null, null])
    })

    it('end all sessions of a user at a password change; those of others live on when the processes are replaced', async () => {
      await nextSecond()
      const [mine, other, max] = [on(0), on(1), on(0)]
      for (const browser of [mine, other]) await browser.login()
      await max.login('max')
      const change = { oldPassword: PASSWORD, newPassword: 'a password that is new' }
      expect((await mine.send('POST', '/password', change)).status).toBe(200)
      expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', null])
      // The other process has not heard of the new password: its store has.
      const late = await on(1).login()
      expect([late.status, late.body.error, late.headers.getSetCookie()]).toEqual([401, 'stale_login', []])

      await nextSecond()
      await Promise.all(services.map(service => service.stop('SIGTERM')))
      expect(services.map(service => service.code())).toEqual([0, 0])
      services = [await startService()]
      expect(await on(0, max).whoami()).toBe('max')
      // The users begin anew with their demo password, also ada, whose minimum password version the store remembers.
      expect((await on(0).login()).status).toBe(200)
    }, 60_000)
  })
