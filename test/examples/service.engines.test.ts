// The service as its operators run it: several processes on one store, restarted now and then, on every kind of store.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Client, PASSWORD, root, type Service, startExample } from '../support/example-service.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine, ENGINES, type EngineName } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { freePort, until } from '../support/services/process.ts'
import { sharedRedisCluster, startRedis } from '../support/services/redis.ts'
import { sqliteFile } from '../support/services/sqlite.ts'
import { makeCertificate } from '../support/services/tls.ts'

interface Database {
  readonly url: string
  readonly env?: Record<string, string>
  stop(): unknown
}

const DATABASES: readonly { name: string; engine: EngineName; open(): Promise<Database> }[] = [
  {
    name: 'Redis',
    engine: 'redis',
    open: () => startRedis(),
  },
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
  {
    name: 'PostgreSQL',
    engine: 'postgresql',
    async open() {
      const server = await sharedPostgres()
      return { url: server.url(), stop: server.stop }
    },
  },
  {
    name: 'MariaDB',
    engine: 'mariadb',
    async open() {
      const server = await sharedMariadb()
      return { url: server.url(), stop: server.stop }
    },
  },
  {
    name: 'SQLite',
    engine: 'libsql',
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

it('the service without a driver says what to install', async () => {
  const drivers = [
    ['redis://127.0.0.1:1', 'npm i redis'],
    ['redis+cluster://127.0.0.1:1', 'npm i redis'],
    ['postgres://127.0.0.1:1/x', 'npm i pg'],
    ['mysql://127.0.0.1:1/x', 'npm i mysql2'],
    ...(ENGINES['node:sqlite'].missing() === null ? [] : [['sqlite:x.db', 'npm i better-sqlite3']]),
  ] as [string, string][]
  await build()
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-bare-'))
  try {
    // Recipes that were installed lead back to the root.
    const filter = (path: string) => !/examples\/.*node_modules/.test(path)
    for (const path of ['package.json', 'dist', 'examples/server', 'node_modules/cookie'])
      cpSync(join(root, path), join(folder, path), { recursive: true, dereference: true, filter })
    const urls = JSON.stringify(drivers.map(([url]) => url))
    writeFileSync(
      join(folder, 'open.mjs'),
      `import { ConfigurationError, openStore } from './examples/server/store.mjs'
      for (const url of ${urls}) await openStore(url).catch(error => console.log(error instanceof ConfigurationError, error.message))`,
    )
    const told = execFileSync(process.execPath, ['open.mjs'], { cwd: folder, encoding: 'utf8' }).trim().split('\n')
    expect(told).toEqual(drivers.map(([, line]) => expect.stringMatching(new RegExp(`^true .*${line}$`))))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
