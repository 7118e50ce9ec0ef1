// Settings of a server, and of the application's pool, that change what a statement means or how its rows come.
import { MysqlStore } from 'coatcheck/stores/mysql'
import type mysql from 'mysql2/promise'
import { beforeAll, expect, it } from 'vitest'
import { within } from '../../support/deadlines.ts'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startMariadb } from '../../support/services/mariadb.ts'
import { mariadbOf } from '../databases.ts'
import { isExact } from '../exact.ts'
import { call, NOW, record } from '../records.ts'

describeEngine('mariadb', 'settings of MariaDB and of mysql2', () => {
  const own = mariadbOf(startMariadb)
  let usual: MysqlStore
  beforeAll(() => {
    usual = new MysqlStore(own.admin)
  })

  /** A store over connections that have run this first. */
  const after = (sql: string, options: mysql.PoolOptions = {}, table = {}) => {
    const pool = own.server.pool({ connectionLimit: 2, ...options })
    pool.on('connection', connection => connection.query(sql))
    return new MysqlStore(pool, table)
  }
  let tables = 0
  const ofItsOwn = () => ({ table: `sessions_${++tables}` })
  const migrated = async (store: MysqlStore) => {
    await store.migrate()
    return store
  }
  const made = async (count: number, userId: string) => {
    const all = Array.from({ length: count }, (_, i) => record({ userId, createdAt: NOW - count + i }))
    await Promise.all(all.map(one => usual.create(one, call())))
    return all
  }

  it.each([0, 1, 100])('with sql_select_limit = %i no live session is absent', async most => {
    const store = after(`SET sql_select_limit = ${most}`)
    const userId = String(100 + most)
    const all = await made(200, userId)
    expect(await store.isMigrated()).toBe(true)
    expect(await Promise.all(all.map(({ key }) => store.read(key, call())))).toEqual(all)
    expect(await store.read(all[0]!.key, call())).toEqual(all[0])
    expect((await store.listUser(userId, 'session', call())).length).toBe(200)
    expect(await store.deleteUser(userId, { minPasswordVersionUntil: 0 }, call())).toBe(200)
  })

  it.each<[string, mysql.PoolOptions]>([
    ['gives big numbers as text', { supportBigNumbers: true, bigNumberStrings: true }],
    ['gives decimals as numbers', { decimalNumbers: true }],
    ['casts nothing', { typeCast: false }],
    ['casts everything its own way', { typeCast: () => 'x' }],
    ['gives rows as arrays', { rowsAsArray: true }],
    ['nests rows', { nestTables: true }],
    ['joins the names of table and column', { nestTables: '_' }],
    ['counts changed rows instead of found ones', { flags: ['-FOUND_ROWS'] }],
  ])('a pool that %s changes nothing', async (_, options) =>
    isExact(await migrated(new MysqlStore(own.server.pool(options), ofItsOwn()))),
  )

  it('a pool of mysql2 with callbacks changes nothing', async () =>
    isExact(await migrated(new MysqlStore(own.server.pool().pool as never, ofItsOwn()))))

  it.each([
    "time_zone = '-05:00'",
    "time_zone = '+09:00'",
    "sql_mode = ''",
    "sql_mode = 'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES'",
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,NO_ZERO_DATE,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'",
    "sql_mode = 'ORACLE'",
  ])('%s changes nothing', async setting => isExact(await migrated(after(`SET SESSION ${setting}`, {}, ofItsOwn()))))

  it.each(['utf8mb4_general_ci', 'utf8mb4_unicode_ci', 'latin1_swedish_ci'])(
    'a database of the collation %s changes nothing',
    async collation => {
      const charset = collation.split('_')[0]
      await own.server.pool().query(`CREATE DATABASE \`${collation}\` CHARACTER SET ${charset} COLLATE ${collation}`)
      await isExact(await migrated(new MysqlStore(own.server.pool({ uri: own.server.url({ database: collation }) }))))
    },
  )

  it.each(['CHAIN', 'RELEASE'])(
    'with completion_type = %s a transaction leaves its connection as it was',
    async type => {
      const pool = own.server.pool({ connectionLimit: 1 })
      await pool.query(`SET completion_type = '${type}'`)
      const id = async () => ((await pool.query('SELECT CONNECTION_ID() AS id')) as any)[0][0].id
      const before = await id()
      const store = new MysqlStore(pool)
      for (let time = 0; time < 2; time++) {
        const one = record({ userId: '401' })
        expect(await store.create(one, call())).toBe('created')
        expect(await store.deleteUser('401', { minPasswordVersionUntil: 0 }, call())).toBe(1)
        expect(await usual.read(one.key, call())).toBe(null)
      }
      expect(await id()).toBe(before)
    },
  )

  it('where the server takes no writes any more, the connection is closed: the next may lead to another server', async () => {
    const pool = own.server.pool({ connectionLimit: 1 })
    const store = new MysqlStore(pool)
    await pool.query('SET SESSION tx_read_only = 1')
    const one = record({ userId: '402' })
    const [[before]] = (await pool.query('SELECT CONNECTION_ID() AS id')) as any
    expect(await store.create(one, call())).toBe('created')
    const [[after]] = (await pool.query('SELECT CONNECTION_ID() AS id')) as any
    expect(after.id).not.toBe(before.id)
  })

  it.each(["charset: 'latin1'", 'SET NAMES latin1', 'SET NAMES utf8mb3'])(
    'with %s all is refused, and how to mend it',
    async how => {
      const isOption = how.startsWith('charset')
      const store = isOption ? new MysqlStore(own.server.pool({ charset: 'latin1' })) : after(how)
      const mend = /speak (latin1|utf8mb3), and names would come back changed: createPool\(\{ charset: 'utf8mb4' \}\)/
      await expect(store.migrate()).rejects.toThrow(mend)
      await expect(store.isMigrated()).rejects.toThrow(mend)
      await expect(store.create(record(), call())).rejects.toMatchObject({ outcome: 'not-applied' })
    },
  )

  it('after a write that the server refused as read-only no read is answered until it is a primary', async () => {
    const admin = own.server.pool({ connectionLimit: 1 })
    await admin.query("CREATE USER app@'%'")
    await admin.query("GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO app@'%'")
    const store = new MysqlStore(own.server.pool({ user: 'app', password: '', connectionLimit: 2 }))
    const one = record({ userId: '403' })
    const short = () => ({ now: NOW, deadline: within(2000) })
    await store.create(one, call())
    await admin.query('SET GLOBAL read_only = 1')
    try {
      expect(await store.read(one.key, call())).toEqual(one)
      await expect(store.create(record(), short())).rejects.toMatchObject({ outcome: 'not-applied' })
      expect(String((await failure(store.read(one.key, short()))).cause)).toContain('read-only')
    } finally {
      await admin.query('SET GLOBAL read_only = 0')
    }
    expect(await store.read(one.key, call())).toEqual(one)
    expect(await store.create(record(), call())).toBe('created')
  })

  const EMPTY_IS_NULL = "SET sql_mode = CONCAT(@@sql_mode, ',EMPTY_STRING_IS_NULL')"

  it('with EMPTY_STRING_IS_NULL all is refused, and ended is nothing', async () => {
    const store = after(EMPTY_IS_NULL)
    const one = record({ userId: '299' })
    await usual.create(one, call())
    for (const use of [
      () => store.read(one.key, call()),
      () => store.listUser('299', 'session', call()),
      () => store.delete(one.key, call()),
    ]) {
      const error = await failure(use())
      expect(error).toMatchObject({ outcome: 'not-applied' })
      expect(String(error.cause)).toContain('EMPTY_STRING_IS_NULL')
    }
    expect(await usual.read(one.key, call())).toEqual(one)
  })

  it('where EMPTY_STRING_IS_NULL is set later, a read ends no session, and finds it', async () => {
    const pool = own.server.pool({ connectionLimit: 1 })
    const store = new MysqlStore(pool)
    await store.read(record().key, call())
    await pool.query(EMPTY_IS_NULL)
    const [one, guest] = [record({ userId: '300' }), record({ userId: null, userName: null })]
    for (const each of [one, guest]) {
      await usual.create(each, call())
      expect(await store.read(each.key, call())).toEqual(each)
      expect(await usual.read(each.key, call())).toEqual(each)
    }
  })
})
