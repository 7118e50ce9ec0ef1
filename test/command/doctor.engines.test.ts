// `coatcheck doctor` at servers on which something is wrong.
import { SessionManager } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { runCommand } from '../support/command.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { sharedRedisCluster, startRedis } from '../support/services/redis.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'
import { started } from '../support/started.ts'

const PASSWORD = 'hunter2-of-the-store'
const NOTHING_LISTENS = 'nothing listens there: start the server, or correct host and port'
const WRONG_PASSWORD = 'the server refuses this user or password: correct the URL'
const RIGHTS = 'grant this user the rights that the page of its store lists'

/** What it finds: each check with what to do, or 'ok'. The exit code tells of what is wrong, and of no risk. */
async function found(url: string, ...options: string[]) {
  const { code, out, err } = await runCommand(['doctor', url, '--json', ...options])
  expect(out + err).not.toContain('hunter2')
  const checks = out
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as { check: string; verdict: string; text: string; todo: string | null })
  const wrong = checks.filter(({ verdict }) => verdict === 'wrong').map(({ check }) => check)
  const last = expect.stringContaining(`${wrong.length} WRONG (${wrong.join(', ')})`)
  expect([code, err]).toEqual(wrong.length === 0 ? [0, ''] : [1, last])
  for (const { verdict, todo } of checks) expect(verdict === 'ok').toBe(todo === null)
  return Object.fromEntries(checks.map(({ check, todo }) => [check, todo ?? 'ok']))
}

const KEEP = expect.stringContaining('set appendonly yes')

describeEngine('redis', 'coatcheck doctor at Redis', () => {
  it('finds nothing wrong, counts a risk, and leaves nothing', async () => {
    const server = await startRedis(['--requirepass', PASSWORD])
    const url = server.url.replace('://', `://:${PASSWORD}@`)
    try {
      const all = {
        connection: 'ok',
        version: 'ok',
        clock: 'ok',
        role: 'ok',
        persistence: KEEP,
        eviction: 'ok',
        session: 'ok',
      }
      expect(await found(url)).toEqual(all)
      const { code, out, err } = await runCommand(['doctor'], { env: { COATCHECK_STORE_URL: url } })
      expect([code, err]).toEqual([0, '6 ok, 1 RISK (persistence)\n'])
      expect(out).toMatch(
        /^ok {5}connection: Redis at 127\.0\.0\.1\nok {5}version: Redis [\d.]+\nok {5}clock: .*\nok {5}role: a primary\nRISK {3}persistence: no append-only file: .*\n {7}set appendonly yes, .*\nok {5}eviction: .*\nok {5}session: one was written, read, changed and ended in \d+ ms\n$/,
      )
      expect((await runCommand(['count'], { env: { COATCHECK_STORE_URL: url } })).out).toBe('0 live sessions.\n')
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 })
      expect(await found(url)).toMatchObject({ clock: expect.stringContaining('NTP') })
      vi.useRealTimers()
      expect(await found(server.url.replace('://', '://:wrong-hunter2@'))).toEqual({ connection: WRONG_PASSWORD })
    } finally {
      await server.stop()
    }
    expect(await found(url)).toEqual({ connection: NOTHING_LISTENS })
  })

  it('finds a Redis that is full, and one that keeps no append-only file', async () => {
    const server = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    onTestFinished(() => server.stop())
    const persistence = async () => /.*persistence: .*/.exec((await runCommand(['doctor', server.url])).out)?.[0]
    expect(await found(server.url)).toMatchObject({ session: expect.stringContaining('raise its maxmemory') })
    expect(await persistence()).toMatch(/^RISK .* a restart may log everyone out/)
    await server.cli('CONFIG', 'SET', 'appendonly', 'yes')
    expect(await persistence()).toBe('ok     persistence: an append-only file')
  })

  it('finds an eviction policy, a user without rights, a replica, and a node of a cluster', async () => {
    const server = await startRedis(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
    onTestFinished(() => server.stop())
    const evicting = await found(server.url)
    expect(evicting).toMatchObject({ eviction: expect.stringContaining('noeviction') })
    expect(evicting).not.toHaveProperty('session')
    expect((await runCommand(['doctor', server.url, '--allow-eviction'])).err).toBe(
      '5 ok, 2 RISK (persistence, eviction)\n',
    )
    await server.cli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    const rights = ['on', `>${PASSWORD}`, '~*', '+@read', '+@connection', '+info', '+time']
    await server.cli('ACL', 'SETUSER', 'reader', ...rights)
    expect(await found(server.url.replace('://', `://reader:${PASSWORD}@`))).toMatchObject({ session: RIGHTS })
    await server.cli('REPLICAOF', '127.0.0.1', '1')
    expect(await found(server.url)).toMatchObject({ role: 'name the primary' })
    const cluster = await sharedRedisCluster()
    onTestFinished(cluster.stop)
    expect(await found(cluster.nodes[0]!.url)).toMatchObject({ role: expect.stringContaining('redis+cluster://') })
    const hosts = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    expect(await found(`redis+cluster://${hosts}`)).toMatchObject({ role: 'ok', eviction: 'ok', session: 'ok' })
  })
})

const SQL = { connection: 'ok', version: 'ok', clock: 'ok', tables: 'ok', session: 'ok' }
const MIGRATE = expect.stringContaining('run coatcheck migrate')

describeEngine('postgresql', 'coatcheck doctor at PostgreSQL', () => {
  const server = started(startPostgres)

  it('finds missing tables, then nothing, then a user without rights, an older table, and a clock that is wrong', async () => {
    expect(await found(server().url())).toEqual({ connection: 'ok', version: 'ok', clock: 'ok', tables: MIGRATE })
    const pool = server().pool()
    const store = new PostgresStore(pool)
    await store.migrate()
    expect(await found(server().url())).toEqual(SQL)
    expect(await new SessionManager({ store, sweepInterval: false, storeTimeout: '20s' }).count()).toBe(0)
    await pool.query('CREATE ROLE nobody LOGIN')
    expect(await found(server().url({ user: 'nobody' }))).toEqual({ ...SQL, session: RIGHTS })
    await pool.query('CREATE TABLE older AS SELECT id, user_id FROM coatcheck_sessions')
    expect(await found(server().url(), '--table', 'older')).toMatchObject({ tables: expect.stringContaining('ddl') })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 120_000 })
    expect(await found(server().url())).toEqual({ ...SQL, clock: expect.stringContaining('NTP') })
  })

  it('finds a lock, a server that takes no writes, and a clock by which logins fail', async () => {
    const pool = server().pool()
    await new PostgresStore(pool).migrate()
    const other = await pool.connect()
    await other.query('BEGIN; LOCK TABLE coatcheck_sessions')
    const locked = await found(server().url(), '--timeout', '4s')
    await other.query('ROLLBACK')
    other.release()
    expect(locked).toEqual({ ...SQL, session: expect.stringContaining('holds a lock') })
    await pool.query('ALTER ROLE postgres SET default_transaction_read_only = on')
    const readOnly = await found(server().url())
    await pool.query('ALTER ROLE postgres RESET default_transaction_read_only')
    expect(readOnly).toEqual({ ...SQL, session: 'this server takes no writes: name the primary' })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 720_000 })
    const NTP = expect.stringContaining('NTP')
    expect(await found(server().url())).toEqual({ ...SQL, clock: NTP, session: NTP })
  })

  it('finds a user and a database that are not there', async () => {
    expect(await found(server().url({ user: 'absent' }))).toEqual({ connection: WRONG_PASSWORD })
    const todo = 'create the database, or correct its name'
    expect(await found(server().url({ database: 'absent' }))).toEqual({ connection: todo })
  })
})

describeEngine('mariadb', 'coatcheck doctor at MariaDB', () => {
  const server = started(startMariadb)

  it('finds missing tables, then nothing, then a wrong password and a user without rights', async () => {
    expect(await found(server().url())).toEqual({ connection: 'ok', version: 'ok', clock: 'ok', tables: MIGRATE })
    const pool = server().pool()
    await new MysqlStore(pool).migrate()
    expect(await found(server().url())).toEqual(SQL)
    await pool.query(`CREATE USER reader IDENTIFIED BY '${PASSWORD}'`)
    await pool.query('GRANT SELECT ON test.* TO reader')
    expect(await found(server().url({ user: `reader:${PASSWORD}` }))).toEqual({ ...SQL, session: RIGHTS })
    expect(await found(server().url({ user: 'reader:wrong-hunter2' }))).toEqual({ connection: WRONG_PASSWORD })
  })
})

describeEngine('libsql', 'coatcheck doctor at SQLite', () => {
  it('finds a file that is not there, missing tables, then nothing', async () => {
    const { file, remove } = sqliteFile()
    onTestFinished(() => remove())
    expect(Object.keys(await found(`sqlite:${file}`))).toEqual(['connection'])
    const database = openSqlite('libsql', file)
    database.exec('CREATE TABLE other (id TEXT)')
    expect(await found(`sqlite:${file}`)).toEqual({ connection: 'ok', version: 'ok', tables: MIGRATE })
    await new SqliteStore(database).migrate()
    expect(await found(`sqlite:${file}`)).toEqual({ connection: 'ok', version: 'ok', tables: 'ok', session: 'ok' })
    const noTable = await runCommand(['doctor', `sqlite:${file}`, '--table', 'a b'])
    expect(noTable).toMatchObject({ code: 2, err: expect.stringContaining('--table: expected') })
    database.close()
  })
})

describe('coatcheck doctor', () => {
  it('says what it takes', async () => {
    expect(await runCommand(['doctor'])).toMatchObject({ code: 2, err: expect.stringContaining('no store is named') })
    const { code, err } = await runCommand(['doctor', `postgres://app:${PASSWORD}@h/x`, 'more'])
    expect([code, err]).toEqual([2, expect.stringContaining('coatcheck doctor [URL]')])
    expect(err).not.toContain('hunter2')
  })
})
