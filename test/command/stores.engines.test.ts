// The command against real stores.
import { SessionManager, type Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { commandOn } from '../support/command.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { startMariadb } from '../support/services/mariadb.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { startRedis } from '../support/services/redis.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'

const MAX = 2n ** 64n - 1n
const PASSWORD = 'hunter2-of-the-store'

interface Opened {
  /** As an operator writes it, with a password. */
  readonly url: string
  readonly name: RegExp
  readonly store: Store
  /** Ends the server. */
  readonly kill?: () => Promise<void>
  close(): Promise<unknown>
}

const STORES: readonly { name: string; engine: EngineName; sql: boolean; open(): Promise<Opened> }[] = [
  {
    name: 'SQLite',
    engine: 'libsql',
    sql: true,
    async open() {
      const { file, remove } = sqliteFile()
      const database = openSqlite('libsql', file)
      const close = async () => {
        database.close()
        remove()
      }
      return { url: `sqlite:${file}`, name: /^SQLite in /, store: new SqliteStore(database), close }
    },
  },
  {
    name: 'Redis',
    engine: 'redis',
    sql: false,
    async open() {
      const server = await startRedis(['--requirepass', PASSWORD])
      const url = server.url.replace('://', `://:${PASSWORD}@`)
      const client = createClient({ url })
      client.on('error', () => {})
      await client.connect()
      const close = async () => {
        client.destroy()
        await server.stop()
      }
      return { url, name: /^Redis at 127\.0\.0\.1:/, store: new RedisStore(client), kill: server.kill, close }
    },
  },
  {
    name: 'PostgreSQL',
    engine: 'postgresql',
    sql: true,
    async open() {
      const server = await startPostgres()
      // It asks for no password; one that is sent is in the URL all the same.
      const url = server.url().replace('postgres@', `postgres:${PASSWORD}@`)
      const store = new PostgresStore(server.pool())
      return {
        url,
        name: /^PostgreSQL at 127\.0\.0\.1:/,
        store,
        kill: server.kill,
        close: server.stop,
      }
    },
  },
  {
    name: 'MariaDB',
    engine: 'mariadb',
    sql: true,
    async open() {
      const server = await startMariadb()
      await server.pool().query(`CREATE USER operator IDENTIFIED BY '${PASSWORD}'`)
      await server.pool().query('GRANT ALL ON test.* TO operator')
      const url = server.url().replace('mysql://root@', `mariadb://operator:${PASSWORD}@`)
      const store = new MysqlStore(server.pool())
      return { url, name: /^MariaDB at 127\.0\.0\.1:/, store, kill: server.kill, close: server.stop }
    },
  },
]

for (const { name, engine, sql, open } of STORES)
  describeEngine(engine, `coatcheck on ${name}`, () => {
    let opened: Opened
    let on: ReturnType<typeof commandOn>
    let now = Date.now()
    let sessions: SessionManager
    const secrets: string[] = []
    /** A session of this user, as the application begins it. */
    const logIn = async (id: bigint | number, name = 'ada', manager = sessions) => {
      const session = await manager.create({ user: { id, name }, data: { secret: 'kept-by-the-application' } })
      secrets.push(session.secret)
      return session
    }
    beforeAll(async () => {
      opened = await open()
      on = commandOn(opened.url)
      const options = { rememberFor: '30d', sweepInterval: false, storeTimeout: '30s' } as const
      sessions = new SessionManager({ ...options, store: opened.store, now: () => now })
    }, 240_000)
    afterAll(() => opened?.close())

    const itOnSql = sql ? it : () => {}
    itOnSql('says that the tables are missing, and creates them', async () => {
      const { code, out, err } = await on.run('list', '42')
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(err).toMatch(/^coatcheck: \w+ .*: the tables are not there: coatcheck migrate creates them; --table/)
      const created = await on.text('migrate')
      expect(created).toMatch(opened.name)
      expect(created).toMatch(/the tables were missing and have been created\.$/)
      expect(await on.text('migrate')).toMatch(/the tables are there, nothing was changed\.$/)
      expect(await on.json('migrate')).toEqual([{ migrated: false }])
    })

    itOnSql('prints the DDL that migrate runs, without a connection', async () => {
      const scheme = opened.url.slice(0, opened.url.indexOf(':') + 1)
      const Sql = opened.store.constructor as typeof SqliteStore
      expect(await on.text('ddl', '--store', scheme)).toBe(Sql.ddl().trim())
      expect(await on.json('ddl', '--table', 'mine')).toEqual([{ ddl: Sql.ddl({ table: 'mine' }) }])
    })

    itOnSql('refuses a table that is not there', async () => {
      const other = await on.run('list', '42', '--table', 'other')
      expect([other.code, other.err]).toEqual([1, expect.stringMatching(/the tables are not there/)])
    })

    it.each([
      [sql ? '--table' : '--prefix', sql ? 'drop table' : 'a{b}', 'expected '],
      ['--namespace', 'a b', 'expected 1 to 32'],
    ])('answers a %s of %j as wrong usage', async (option, name, message) => {
      const { code, err } = await on.run('list', '42', option, name)
      expect([code, err]).toEqual([2, expect.stringContaining(`coatcheck: ${option}: ${message}`)])
    })

    const itOnRedis = sql ? () => {} : it
    itOnRedis('needs no schema, and sweeps by itself', async () => {
      const ddl = await on.run('ddl')
      expect(ddl).toEqual({ code: 0, out: '', err: 'Redis needs no tables.\n' })
      expect(await on.json('ddl')).toEqual([{ ddl: null }])
      expect(await on.text('migrate')).toMatch(/there is nothing to migrate/)
      expect(await on.text('sweep')).toMatch(/removes expired sessions by itself/)
    })

    it('lists the sessions of exactly this user, for people and in JSON', async () => {
      const mine = await logIn(MAX, 'max\u009b2J')
      await logIn(MAX - 1n)
      const text = await on.run('list', `${MAX}`)
      expect(text.code).toBe(0)
      expect(text.out.split('\n')).toHaveLength(3)
      expect(text.out).toContain(`${mine.key}  ${MAX}  ${new Date(mine.createdAt).toISOString().slice(0, 19)}Z`)
      expect(text.out).toContain('max\\u009b2J')
      expect(text.err).toBe(`1 session of user ${MAX}.\n`)
      const { key, createdAt, seenAt, expiresAt, absoluteExpiresAt } = mine
      expect(await on.json('list', `${MAX}`)).toEqual([
        {
          key,
          userId: `${MAX}`,
          userName: 'max\u009b2J',
          createdAt,
          seenAt,
          expiresAt,
          absoluteExpiresAt,
          remembered: false,
        },
      ])
    })

    it('says so where a user has no session', async () => {
      const none = await on.run('list', '7')
      expect(none).toMatchObject({ code: 0, out: '' })
      expect(none.err).toMatch(/^0 sessions of user 7\.\nIf there should be some, see whether --/)
      expect(await on.json('list', '7')).toEqual([])
      const end = await on.run('invalidate-user', '7')
      expect(end.out).toBe('0 sessions of user 7 ended.\n')
    })

    it('revokes one session with the remember tokens of its device, and no session of another user', async () => {
      const [one, other, foreign] = [await logIn(1), await logIn(1), await logIn(2)]
      const token = await sessions.issueRememberToken(one)
      secrets.push(...token.split('.'))
      expect(await on.json('revoke', '1', foreign.key)).toEqual([{ ended: 0 }])
      expect((await on.run('revoke', '1', foreign.key)).out).toBe('0 sessions ended: user 1 has none with this key.\n')
      expect(await on.text('revoke', '1', one.key)).toBe('1 session of user 1 ended.')
      expect(await sessions.get(one.secret)).toBeNull()
      expect(await sessions.redeemRememberToken(token)).toBeNull()
      for (const alive of [other, foreign]) expect(await sessions.get(alive.secret)).not.toBeNull()
      expect(await on.json('revoke', '1', one.key)).toEqual([{ ended: 0 }])
    })

    it('ends all sessions and remember tokens of a user, and late logins with an older password', async () => {
      const [one, other] = [await logIn(3), await logIn(4)]
      await logIn(3)
      const token = await sessions.issueRememberToken(one)
      secrets.push(...token.split('.'))
      expect(await on.text('invalidate-user', '3', '--min-password-version', '5')).toBe(
        '2 sessions of user 3 ended. Logins below password version 5 are refused.',
      )
      expect(await sessions.get(one.secret)).toBeNull()
      expect(await sessions.redeemRememberToken(token)).toBeNull()
      expect(await sessions.get(other.secret)).not.toBeNull()
      const late = sessions.create({ user: { id: 3, name: 'ada', passwordVersion: 4 } })
      await expect(late).rejects.toMatchObject({ code: 'ERR_SESSION_STALE_LOGIN' })
    })

    it('keeps to the tenant that is named', async () => {
      const tenant = sessions.namespace('acme')
      const [theirs, ours] = [await logIn(5, 'ada', tenant), await logIn(5)]
      expect((await on.json('list', '5', '--namespace', 'acme')).map(({ key }) => key)).toEqual([theirs.key])
      expect((await on.json('list', '5')).map(({ key }) => key)).toEqual([ours.key])
      expect(await on.json('invalidate-user', '5', '--namespace', 'acme')).toEqual([{ ended: 1 }])
      expect(await tenant.get(theirs.secret)).toBeNull()
      expect(await sessions.get(ours.secret)).not.toBeNull()
    })

    itOnSql('sweeps what has been expired for 5 minutes', async () => {
      const alive = await logIn(6)
      now = Date.now() - 86_400_000
      for (let count = 0; count < 3; count++) await logIn(6)
      now = Date.now()
      const [{ removed }] = await on.json('sweep')
      expect(removed).toBeGreaterThanOrEqual(3)
      expect(await on.json('sweep')).toEqual([{ removed: 0 }])
      expect(await on.text('sweep')).toBe('0 expired records removed.')
      expect(await sessions.get(alive.secret)).not.toBeNull()
    })

    it('counts and lists the sessions of all users, tenants and visitors', async () => {
      const [{ count: before }] = await on.json('count')
      const tenant = sessions.namespace('counted')
      const user = await logIn(MAX)
      const theirs = await logIn(8, 'ada', tenant)
      const visitor = await sessions.create({ data: { cart: 1 } })
      secrets.push(visitor.secret)
      expect(await on.json('count')).toEqual([{ count: before + 3 }])
      expect(await on.text('count')).toBe(`${before + 3} live sessions.`)
      expect(await on.text('count', '--namespace', 'counted')).toBe('1 live session of users of counted.')
      const all = await on.json('list')
      expect(all).toHaveLength(before + 3)
      const found = (session: { key: string }) => all.find(({ key }) => key === session.key)
      expect(found(user)).toMatchObject({ userId: `${MAX}`, userName: 'ada', namespace: null })
      expect(found(theirs)).toMatchObject({ userId: '8', userName: 'ada', namespace: 'counted' })
      expect(found(visitor)).toMatchObject({ userId: null, userName: null, namespace: null })
      expect((await on.json('list', '--namespace', 'counted')).map(({ key }) => key)).toEqual([theirs.key])
      const { out, err } = await on.run('list')
      expect(out.split('\n').filter(line => line.startsWith('KEY '))).toHaveLength(1)
      expect(out.split('\n')).toHaveLength(before + 5)
      expect(out).toContain(`${theirs.key}  8 of counted  `)
      expect(err).toBe(`${before + 3} sessions.\n`)
    })

    it('ends all sessions and remember tokens of everyone', async () => {
      const tenant = sessions.namespace('ended')
      const [user, theirs] = [await logIn(9), await logIn(9, 'ada', tenant)]
      const visitor = await sessions.create({ data: { cart: 1 } })
      const token = await sessions.issueRememberToken(user)
      secrets.push(visitor.secret, ...token.split('.'))
      expect(await on.json('invalidate-all', '--yes', '--namespace', 'ended')).toEqual([{ ended: 1 }])
      expect(await tenant.get(theirs.secret)).toBeNull()
      for (const alive of [user, visitor]) expect(await sessions.get(alive.secret)).not.toBeNull()
      const [{ count }] = await on.json('count')
      expect(count).toBeGreaterThan(1)
      expect(await on.json('invalidate-all', '--yes')).toEqual([{ ended: count }])
      for (const dead of [user, visitor]) expect(await sessions.get(dead.secret)).toBeNull()
      expect(await sessions.redeemRememberToken(token)).toBeNull()
      expect(await on.json('count')).toEqual([{ count: 0 }])
      expect(await on.json('invalidate-all', '--yes')).toEqual([{ ended: 0 }])
      for (const args of [['count'], ['invalidate-all', '--yes'], ['invalidate-user', '9'], ['revoke', '9', user.key]])
        expect((await on.run(...args)).err).toMatch(/^If there should be some, see whether --/)
      expect(await on.run('list')).toMatchObject({
        code: 0,
        out: '',
        err: expect.stringMatching(/^0 sessions\.\nIf there/),
      })
    })

    it('names the store without its password where the store is down, in one line', async () => {
      if (opened.kill === undefined) return
      await opened.kill()
      for (const args of [['list'], ['revoke', '42', 'x'.repeat(46)], ['invalidate-all', '--yes']]) {
        const { code, out, err } = await on.run(...args)
        expect({ code, out }).toEqual({ code: 1, out: '' })
        expect(err).toMatch(/^coatcheck: [^\n]* at 127\.0\.0\.1: [^\n]*\n$/)
      }
    })

    it('has printed no session ID, no remember token, no data, no password and nothing that steers a terminal', () => {
      expect(secrets.length).toBeGreaterThan(8)
      for (const secret of [...secrets, PASSWORD, 'kept-by-the-application']) expect(on.printed()).not.toContain(secret)
      expect(on.printed()).not.toContain('\u009b')
    })
  })
