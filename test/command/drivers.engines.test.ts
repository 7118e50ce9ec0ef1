// Drivers are found where the operator has installed them.
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { createClient, createCluster } from 'redis'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { coatcheck, commandOn, runCommand } from '../support/command.ts'
import { root } from '../support/pages.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine, ENGINES } from '../support/services/engines.ts'
import { startRedis, startRedisCluster } from '../support/services/redis.ts'

// An installation runs each command in a process of its own.
vi.setConfig({ testTimeout: 120_000 })

const PASSWORD = 'hunter2-of-the-store'
beforeAll(() => build(), 240_000)

/** What an installation without development has: the package, and these drivers. It is there until the test has finished. */
function installation(...drivers: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-installed-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const path of ['package.json', 'dist', 'node_modules/cookie'])
    cpSync(join(root, path), join(folder, path), { recursive: true })
  for (const driver of drivers) symlinkSync(join(root, 'node_modules', driver), join(folder, 'node_modules', driver))
  const run = (url: string, ...args: string[]) =>
    coatcheck(args, { env: { COATCHECK_STORE_URL: url }, cwd: folder, program: join(folder, 'dist/command.js') })
  return { folder, run }
}

/** `redis` comes first of what is installed here, so that it needs no installation. */
const withDriver = (driver: string) =>
  driver === 'redis'
    ? (url: string, ...args: string[]) => runCommand(args, { env: { COATCHECK_STORE_URL: url } })
    : installation(driver).run

/** A pool of `pg` that loses its connection, keeps nothing open, and never says that it has closed. */
const NEVER_CLOSES = `exports.Pool = class {
  on() {}
  connect = answer => (answer ? answer(new Error('away')) : Promise.resolve({ release() {} }))
  end = () => new Promise(() => {})
}`

describe('coatcheck without a driver', () => {
  it('says what to install', async () => {
    const { folder, run } = installation()
    for (const [url, line] of [
      ['redis://127.0.0.1:1', 'npm i redis (or ioredis)'],
      ['postgres://127.0.0.1:1/x', 'npm i pg'],
      ['mysql://127.0.0.1:1/x', 'npm i mysql2'],
    ] as const) {
      const { code, err } = await run(url, 'list', '42')
      expect([code, err]).toEqual([1, expect.stringContaining(`needs a driver that is not installed here: ${line}`)])
    }
    // Of Node.js itself, from 22.5.
    const sqlite = await run(`sqlite:${join(folder, 'a.db')}`, 'migrate')
    if (ENGINES['node:sqlite'].missing() === null) expect(sqlite.code).toBe(0)
    else expect(sqlite.err).toContain('npm i better-sqlite3 (or libsql)')
  })

  it.each([
    [
      'take one that is broken for one that is missing',
      "require('something-it-needs')",
      /pg cannot be loaded \(Cannot find/,
    ],
    [
      'wait for ever for one that never closes, and still says what failed',
      NEVER_CLOSES,
      /: no connection to .*: away\n$/,
    ],
  ])('does not %s', async (_, driver, message) => {
    const { folder, run } = installation()
    mkdirSync(join(folder, 'node_modules/pg'))
    writeFileSync(join(folder, 'node_modules/pg/index.js'), driver)
    const { code, err } = await run('postgres://127.0.0.1:1/x', 'list', '42')
    expect([code, err]).toEqual([1, expect.stringMatching(message)])
  })
})

const DRIVERS = ['redis', 'ioredis']
describeEngine('redis', 'coatcheck with redis and with ioredis', () => {
  it('works with either, and tells a wrong password without it', async () => {
    const server = await startRedis(['--requirepass', PASSWORD])
    onTestFinished(() => server.stop())
    const wrong = server.url.replace('://', '://:wrong-hunter2@')
    const right = server.url.replace('://', `://:${PASSWORD}@`)
    for (const driver of DRIVERS) {
      const run = withDriver(driver)
      const refused = await run(wrong, 'list', '42')
      expect(refused, driver).toMatchObject({ code: 1, out: '' })
      expect(refused.err).toMatch(/^coatcheck: Redis at [^\n]*: WRONGPASS[^\n]*\n$/)
      expect(refused.err).not.toContain('hunter2')
      // It asks for the facts of a server, and writes, reads and ends a session.
      expect(await run(right, 'doctor'), driver).toMatchObject({ code: 0, err: '6 ok, 1 RISK (persistence)\n' })
    }
  })

  it('works on a cluster with either, which asks for a password', async () => {
    const cluster = await startRedisCluster()
    onTestFinished(() => cluster.stop())
    const client = createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    const sessions = new SessionManager({ store: new RedisStore(client), storeTimeout: '20s' })
    const hosts = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    // Connections that are open, as that of `sessions`, need none.
    const begin = () => Promise.all([1, 2, 3].map(id => sessions.create({ user: { id, name: 'ada' } })))
    const [first] = await begin()
    await Promise.all(cluster.nodes.map(node => node.cli('CONFIG', 'SET', 'requirepass', PASSWORD)))
    for (const driver of DRIVERS) {
      const run = withDriver(driver)
      const on = (...args: string[]) => run(`redis+cluster://:${PASSWORD}@${hosts}`, ...args, '--json')
      expect(await on('count'), driver).toEqual({ code: 0, out: '{"count":3}\n', err: '' })
      const listed = (await on('list')).out.trim().split('\n')
      expect(listed.map(line => JSON.parse(line).userId).sort()).toEqual(['1', '2', '3'])
      expect((await on('invalidate-all', '--yes')).out).toBe('{"ended":3}\n')
      const wrong = await run(`redis+cluster://:wrong-hunter2@${hosts}`, 'count')
      expect(wrong).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^coatcheck: Redis Cluster at /) })
      expect(wrong.err).not.toContain('hunter2')
      const gone = await run('redis+cluster://:hunter2@127.0.0.1:1', 'list', '42')
      expect([gone.code, gone.err]).toEqual([
        1,
        expect.stringMatching(/^coatcheck: Redis Cluster at 127\.0\.0\.1: [^\n]*\n$/),
      ])
      if (driver === 'redis') await begin()
    }
    expect(await sessions.get(first!.secret)).toBeNull()
  })

  it('refuses a Redis that evicts, unless told', async () => {
    const server = await startRedis(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
    onTestFinished(() => server.stop())
    const on = commandOn(server.url)
    const { code, err } = await on.run('list', '42')
    expect([code, err]).toEqual([1, expect.stringMatching(/Redis evicts keys .*, or give --allow-eviction\n$/)])
    expect(await on.json('list', '42', '--allow-eviction')).toEqual([])
  })

  it('finds the users of a store with singleSlot by --single-slot', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const client = createClient({ url: server.url })
    await client.connect()
    onTestFinished(() => client.destroy())
    const store = new RedisStore(client, { singleSlot: true })
    const { key } = await new SessionManager({ store, storeTimeout: '20s' }).create({ user: { id: 42, name: 'ada' } })
    const on = commandOn(server.url)
    expect(await on.json('list', '42')).toEqual([])
    expect(await on.json('list', '42', '--single-slot')).toMatchObject([{ key }])
  })
})
