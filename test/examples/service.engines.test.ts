// The service as its operators run it: several processes on one store, restarted now and then, on every kind of store.
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Client, PASSWORD, root, runExample, type Service, startExample } from '../support/example-service.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine, ENGINES, type EngineName } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { freePort, until } from '../support/services/process.ts'
import { sharedRedisCluster, startRedis } from '../support/services/redis.ts'
import { sqliteFile } from '../support/services/sqlite.ts'
import { makeCertificate } from '../support/services/tls.ts'

interface Database {
  readonly url: string
  readonly outage?: { begin(): Promise<void>; end(): Promise<void> }
  stop(): unknown
}

/** `canFail`: there is a server that can be switched off. */
const DATABASES: readonly { name: string; engine: EngineName; canFail: boolean; open(): Promise<Database> }[] = [
  {
    name: 'Redis',
    engine: 'redis',
    canFail: true,
    async open() {
      const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
      return { url: server.url, outage: { begin: server.kill, end: () => server.restart() }, stop: server.stop }
    },
  },
  {
    name: 'Redis Cluster',
    engine: 'redis',
    canFail: false,
    async open() {
      const cluster = await sharedRedisCluster()
      const hosts = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
      return { url: `redis+cluster://${hosts}`, stop: cluster.stop }
    },
  },
  {
    name: 'PostgreSQL',
    engine: 'postgresql',
    canFail: true,
    async open() {
      const server = await startPostgres()
      return { url: server.url(), outage: { begin: server.kill, end: server.restart }, stop: server.stop }
    },
  },
  {
    name: 'MariaDB',
    engine: 'mariadb',
    canFail: true,
    async open() {
      const server = await startMariadb()
      const url = server.url({ database: 'test' })
      return { url, outage: { begin: server.kill, end: server.restart }, stop: server.stop }
    },
  },
  {
    name: 'SQLite',
    engine: 'libsql',
    canFail: false,
    async open() {
      const { file, remove } = sqliteFile()
      return { url: `sqlite:${file}`, stop: remove }
    },
  },
]

/** The demo users take the second in which a password was set as its version. */
const nextSecond = () => {
  const second = () => Math.floor(Date.now() / 1000)
  const now = second()
  return until('the next second', () => expect(second()).toBeGreaterThan(now))
}

describeEngine('redis', 'two service processes on Redis over TLS', () => {
  it('share the sessions, with rediss:// and the certificate authority of the operator', async () => {
    const certificate = makeCertificate(['localhost'])
    const port = await freePort()
    const { certFile, keyFile } = certificate
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
    const server = await startRedis(['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files])
    const services: Service[] = []
    try {
      const settings = { STORE_URL: `rediss://localhost:${port}`, NODE_EXTRA_CA_CERTS: certFile }
      services.push(
        ...(await Promise.all([startExample('server.mjs', settings), startExample('server.mjs', settings)])),
      )
      const first = new Client(services[0]!.url)
      await first.login('max')
      const second = new Client(services[1]!.url)
      for (const [name, value] of first.cookies) second.cookies.set(name, value)
      expect(await second.whoami()).toBe('max')
      await second.send('POST', '/logout')
      expect(await first.whoami()).toBeNull()
    } finally {
      for (const service of services) await service.stop()
      await server.stop()
      certificate.remove()
    }
  }, 120_000)
})

for (const { name, engine, canFail, open } of DATABASES)
  describeEngine(engine, `two service processes on ${name}`, () => {
    let database: Database
    let services: Service[]
    const startService = () => startExample('server.mjs', { STORE_URL: database.url })
    const on = (index: 0 | 1, from?: Client) => {
      const client = new Client(services[index]!.url)
      for (const [name, value] of from?.cookies ?? []) client.cookies.set(name, value)
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

    it('share the sessions: a login on one, a profile and a logout on the other', async () => {
      const first = on(0)
      expect((await first.login('max')).status).toBe(200)
      const second = on(1, first)
      expect((await second.send('GET', '/profile')).text.trim()).toBe('{"id":18446744073709551615,"name":"max"}')
      await second.send('POST', '/logout')
      expect(await first.whoami()).toBeNull()
    })

    it('share devices and remember tokens', async () => {
      const first = on(0)
      await first.login('max', PASSWORD, true)
      const second = on(1, first)
      second.cookies.delete('session_id')
      expect(await second.whoami()).toBe('max')
      expect((await second.send('GET', '/sessions')).body).toHaveLength(2)
      await second.send('POST', '/logout')
    })

    it('end all sessions of a user at a password change on one of them, and late logins with the old one', async () => {
      await nextSecond()
      const [mine, other] = [on(0), on(1)]
      await mine.login()
      await other.login()
      const change = { oldPassword: PASSWORD, newPassword: 'a password that is new' }
      expect((await mine.send('POST', '/password', change)).status).toBe(200)
      expect([await mine.whoami(), await other.whoami()]).toEqual(['ada', null])
      // The other process has not heard of the new password: its store has.
      const late = await on(1).login()
      expect([late.status, late.body.error, late.headers.getSetCookie()]).toEqual([401, 'stale_login', []])
    })

    it('stop when told, and sessions live on in the next ones', async () => {
      const max = on(0)
      await max.login('max')
      await nextSecond()
      await Promise.all(services.map(service => service.stop('SIGTERM')))
      expect(services.map(service => service.code())).toEqual([0, 0])
      services = [await startService()]
      expect(await on(0, max).whoami()).toBe('max')
      // The users begin anew with their demo password, also ada, whose floor the store remembers.
      expect((await on(0).login()).status).toBe(200)
    }, 60_000)

    const itCanFail = canFail ? it : () => {}
    itCanFail(
      'answer 503 while the store is away, touch no cookie, and find the session afterwards',
      async () => {
        const outage = database.outage!
        const ada = on(0)
        await ada.login()
        await outage.begin()
        for (const [method, path] of [
          ['GET', '/profile'],
          ['POST', '/logout'],
        ] as const) {
          const answer = await ada.send(method, path)
          expect([answer.status, answer.body.error]).toEqual([503, 'store_unavailable'])
          expect(answer.headers.getSetCookie()).toEqual([])
        }
        expect((await on(0).send('GET', '/profile')).text.trim()).toBe('null')
        await outage.end()
        await until('the service finds its store again', async () => expect(await ada.whoami()).toBe('ada'))
      },
      90_000,
    )
  })

describe('the service', () => {
  it('stops at SIGINT and SIGTERM after it has answered', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const service = await startExample('server.mjs')
      // The service says 100 Continue when it has the head of the request: the answer is still to come then.
      const login = request(`${service.url}/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Expect: '100-continue' },
      })
      const answer = once(login, 'response')
      login.on('response', response => response.resume())
      const begun = once(login, 'continue')
      login.flushHeaders()
      await begun
      login.end(JSON.stringify({ username: 'ada', password: PASSWORD }))
      await service.stop(signal)
      expect((await answer)[0].statusCode).toBe(200)
      expect(service.code()).toBe(0)
    }
  }, 60_000)

  it.concurrent.each([
    [{ PORT: 'http' }, /PORT: expected a number/],
    [{ PORT: '70000' }, /PORT: expected a number/],
    [{ COOKIE_SECURE: 'false' }, /COOKIE_SECURE: expected on or off, got "false"/],
    [{ COOKIE_SECURE: 'off', HOST: '0.0.0.0' }, /COOKIE_SECURE=off is for this machine alone, not for HOST=0\.0\.0\.0/],
    [{ COOKIE_SECURE: 'off', HOST: '' }, /COOKIE_SECURE=off is for this machine alone/],
    [{ STORE_URL: '' }, /STORE_URL: expected memory:/],
    [{ STORE_URL: 'mongodb://localhost' }, /STORE_URL: expected memory:/],
    [{ STORE_URL: '__proto__:' }, /STORE_URL: expected memory:/],
    [{ STORE_URL: 'redis+cluster://' }, /expected redis\+cluster:\/\/host:port,host:port/],
    [{ STORE_URL: 'sqlite:' }, /expected sqlite:FILE/],
    [{ STORE_URL: 'sqlite:/nowhere/at/all.db' }, /SQLite in \/nowhere\/at\/all\.db cannot be used/],
    [{ STORE_URL: 'redis://:hunter2@127.0.0.1:1' }, /Redis at 127\.0\.0\.1:1 cannot be used/],
    [{ STORE_URL: 'postgres://ada:hunter2@127.0.0.1:1/x' }, /PostgreSQL at 127\.0\.0\.1:1 cannot be used/],
    [{ STORE_URL: 'mysql://ada:hunter2@127.0.0.1:1/x' }, /MySQL at 127\.0\.0\.1:1 cannot be used/],
  ])(
    'says in a line why it does not start with %j',
    async (env, message) => {
      const { output, code } = await runExample('server.mjs', { PORT: '0', ...env })
      expect(output).toMatch(message)
      expect(output).not.toMatch(/hunter2|\n {4}at /)
      expect(code).toBe(1)
    },
    60_000,
  )

  it('without a driver says what to install', async () => {
    const DRIVERS = [
      ['redis://127.0.0.1:1', 'npm i redis'],
      ['redis+cluster://127.0.0.1:1', 'npm i redis'],
      ['postgres://127.0.0.1:1/x', 'npm i pg'],
      ['mysql://127.0.0.1:1/x', 'npm i mysql2'],
      ...(ENGINES['node:sqlite'].missing() === null ? [] : [['sqlite:x.db', 'npm i better-sqlite3']]),
    ]
    await build()
    const folder = mkdtempSync(join(tmpdir(), 'coatcheck-bare-'))
    try {
      // Recipes that were installed lead back to the root.
      const filter = (path: string) => !/examples\/.*node_modules/.test(path)
      for (const path of ['package.json', 'dist', 'examples', 'node_modules/cookie'])
        cpSync(join(root, path), join(folder, path), { recursive: true, dereference: true, filter })
      await Promise.all(
        DRIVERS.map(async ([url, command]) => {
          const { output, code } = await runExample('server.mjs', { PORT: '0', STORE_URL: url! }, folder)
          expect(output, url).toContain(command)
          expect([output.split('\n').length, code], url).toEqual([2, 1])
        }),
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('names a port that is taken', async () => {
    const service = await startExample('server.mjs')
    const { port } = new URL(service.url)
    expect(await runExample('server.mjs', { PORT: port })).toEqual({
      output: `Port ${port} is taken: choose another one, for example PORT=3001\n`,
      code: 1,
    })
    await service.stop()
  })
})
