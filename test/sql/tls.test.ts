// Connections that are encrypted, to a server whose certificate the client checks.
import { SessionManager } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { account, startPostgres } from '../support/services/postgres.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'
import { mariadbOf, postgresOf } from './databases.ts'
import { isExact } from './exact.ts'
import { givenUp } from './locks.ts'
import { call, newKey } from './records.ts'

/** A session that began through `good` is an outage through `bad`, not absent, and lives on. */
async function expectAnOutage(good: PostgresStore | MysqlStore, bad: PostgresStore | MysqlStore): Promise<void> {
  const sessions = new SessionManager({ store: good, storeTimeout: '20s' })
  const mistaken = new SessionManager({ store: bad, storeTimeout: '20s' })
  const { secret } = await sessions.create({ user: { id: 42, name: 'ada' } })
  const error = await mistaken.get(secret).catch(reason => reason)
  expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
  const causes = []
  for (let cause = error; cause instanceof Error; cause = cause.cause) causes.push(cause.message)
  expect(causes.join('\n')).toMatch(/certificate/i)
  await expect(mistaken.destroy(secret)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
  expect(await sessions.get(secret)).toMatchObject({ user: { id: 42n } })
  await sessions.close()
  await mistaken.close()
}

/** The server's, and one of another authority. */
let certificate: Certificate
let stranger: Certificate
beforeAll(() => {
  certificate = makeCertificate(['localhost'])
  stranger = makeCertificate(['localhost'])
})
afterAll(() => {
  for (const each of [certificate, stranger]) each?.remove()
})

describeEngine('postgresql', 'the PostgreSQL store over TLS', () => {
  const own = postgresOf(() => {
    certificate.giveTo(account('postgres'))
    return startPostgres({ ssl: 'on', ssl_cert_file: certificate.certFile, ssl_key_file: certificate.keyFile })
  })
  // Settings beside an address: in the address they would win.
  const encrypted = ({ cert }: Certificate, config: pg.PoolConfig = {}) =>
    own.server.pool({
      connectionString: own.server.url().replace('127.0.0.1', 'localhost'),
      ssl: { ca: cert },
      ...config,
    })

  it('encrypts each connection of pg', async () => {
    const pool = encrypted(certificate, { application_name: 'encrypted' })
    await isExact(new PostgresStore(pool))
    const { rows } = await pool.query(
      "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'encrypted'",
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { ssl } of rows) expect(ssl).toBe(true)
  })

  it('encrypts with Postgres.js too', async () => {
    const sql = own.server.postgresJs({ host: 'localhost', ssl: { ca: certificate.cert }, fetch_types: false })
    expect(await new PostgresStore(sql).read(newKey(), call())).toBeNull()
    const [row] = await sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
    expect(row).toEqual({ ssl: true })
  })

  it('ends at the server what was given up: the request to cancel goes over TLS as well', async () => {
    const store = new PostgresStore(encrypted(certificate, { max: 2 }))
    const release = await own.locks.hold()
    await givenUp(when => store.read(newKey(), when))
    await own.locks.nothingWaits().finally(release)
    expect(await store.read(newKey(), call())).toBeNull()
  })

  it('calls a certificate of another authority an outage, and no logout', () =>
    expectAnOutage(new PostgresStore(own.admin), new PostgresStore(encrypted(stranger))))
})

describeEngine('mariadb', 'the MySQL store over TLS', () => {
  const own = mariadbOf(() => {
    certificate.giveTo(account('mysql'))
    return startMariadb({ 'ssl-cert': certificate.certFile, 'ssl-key': certificate.keyFile })
  })
  const encrypted = ({ cert }: Certificate) =>
    own.server.pool({
      uri: own.server.url().replace('127.0.0.1', 'localhost'),
      ssl: { ca: cert, verifyIdentity: true },
    })

  it('encrypts each connection', async () => {
    const pool = encrypted(certificate)
    await isExact(new MysqlStore(pool))
    const [rows] = await pool.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    expect(rows).toMatchObject([{ Value: expect.stringMatching(/^\w{3}/) }])
  })

  it('calls a certificate of another authority an outage, and no logout', () =>
    expectAnOutage(new MysqlStore(own.admin), new MysqlStore(encrypted(stranger))))
})
