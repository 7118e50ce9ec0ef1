// Two nodes at once, step by step: one has begun its transaction, the other waits for the row of the user and decides when
// it has it, by what stands there then and not by what it saw when its statement began.
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import { beforeAll, describe, expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { TABLES } from '../support/sql/backend.ts'
import { mariadbOf, postgresOf } from './databases.ts'
import type { Locks, Transaction } from './locks.ts'
import { COLUMNS_BUT_ID, call, NOW, newKey, record } from './records.ts'

type Store = PostgresStore | MysqlStore
const LOCK_USER = `SELECT user_id FROM coatcheck_sessions_users WHERE user_id = '42' FOR UPDATE`
/** A session or a series of user 42. */
const one = (changes = {}) => record({ passwordVersion: 5, ...changes })
const insert = (key: string) => `INSERT INTO coatcheck_sessions (id, ${COLUMNS_BUT_ID})
  VALUES ('${key}', 'session', NULL, '', '42', 'ada', 5, '{}', 1, 'writeId0', 0, 0, ${NOW + 9e6}, ${NOW + 9e7}, NULL)`

function races(get: () => { open(): Store; locks: Locks }) {
  const waits = (count: number) =>
    until(`${count} statements waiting`, async () => expect(await get().locks.waiting()).toBe(count))

  /** User 42 with these sessions, and nothing else. */
  async function begun(...sessions: SessionRecord[]) {
    const { open, locks } = get()
    const { run, end } = await locks.begin()
    for (const table of TABLES) await run(`DELETE FROM ${table}`)
    await end()
    const store = open()
    for (const each of sessions) expect(await store.create(each, call())).toBe('created')
    return { store, locks }
  }

  /** What `work` answers that waits for the row of the user, which a transaction of another node has `meanwhile`. */
  async function beside<T>(work: () => Promise<T>, meanwhile: (other: Transaction) => Promise<unknown>): Promise<T> {
    const other = await get().locks.begin()
    await other.run(LOCK_USER)
    const answer = work()
    await waits(1)
    await meanwhile(other)
    await other.end()
    return answer
  }

  it('lets no login in with the old password that waited for a logout everywhere', async () => {
    const late = one()
    const { store } = await begun(one())
    const raise = ({ run }: Transaction) =>
      run(`UPDATE coatcheck_sessions_users SET min_password_version = 9, min_password_version_until = ${NOW + 1e9}`)
    expect(await beside(() => store.create(late, call()), raise)).toBe('stale-login')
    expect(await store.read(late.key, call())).toBe(null)
  })

  it('ends, by a logout everywhere, what a login and a new ID made while it waited for them', async () => {
    const session = one()
    const { store } = await begun(session)
    const [made, moved] = [newKey(), newKey()]
    const ended = await beside(
      () => store.deleteUser('42', { minPasswordVersionUntil: 0 }, call()),
      async ({ run }) => {
        for (const key of [made, moved]) await run(insert(key))
        await run(`UPDATE coatcheck_sessions SET moved_to = '${moved}', user_id = NULL, user_name = NULL
          WHERE id = '${session.key}'`)
      },
    )
    expect(ended).toBe(2)
    for (const key of [made, moved]) expect(await store.read(key, call())).toBe(null)
  })

  it.each([{}, { forward: { salt: '', until: NOW } }])(
    'gives no new ID to a session that ended while it waited: %j',
    async options => {
      const [session, next] = [one(), one()]
      const { store } = await begun(session)
      const end = ({ run }: Transaction) => run(`DELETE FROM coatcheck_sessions WHERE id = '${session.key}'`)
      expect(await beside(() => store.replace(session.key, 1, next, options, call()), end)).toBe('gone')
      expect(await store.read(next.key, call())).toBe(null)
    },
  )

  it('begins no series with a session that got a new ID while the series waited', async () => {
    const session = one()
    const { store } = await begun(session)
    const series = one({ kind: 'remember', parent: session.key })
    const move = ({ run }: Transaction) =>
      run(`UPDATE coatcheck_sessions SET moved_to = '${newKey()}', parent_key = NULL WHERE id = '${session.key}'`)
    expect(await beside(() => store.create(series, call()), move)).toBe('orphan')
    expect(await store.read(series.key, call())).toBe(null)
  })

  it('lets no session end with which a series is beginning, until that is stored', async () => {
    const session = one()
    const { store, locks } = await begun(session)
    const series = one({ kind: 'remember', parent: session.key })
    // Its key is taken in an open transaction: the statement that begins it stops half-way, with its locks.
    const other = await locks.begin()
    await other.run(insert(series.key))
    const made = store.create(series, call())
    await waits(1)
    const ended = store.delete(session.key, call())
    await waits(2)
    await other.end('ROLLBACK')
    expect([await made, await ended]).toEqual(['created', true])
  })

  it('keeps the user locked in each piece of a logout everywhere, until that piece is committed', async () => {
    const last = one({ key: 'z'.repeat(46) })
    const { store, locks } = await begun(one(), one(), last)
    const release = await locks.hold(`SELECT id FROM coatcheck_sessions WHERE id = '${last.key}' FOR UPDATE`)
    const inPieces = Object.assign(get().open(), { batch: 1 })
    const everywhere = inPieces.deleteUser('42', { minPasswordVersionUntil: 0 }, call())
    await waits(1)
    const login = store.create(one(), call())
    await waits(2)
    await release()
    // It ends what began while it was at work, if a piece comes after that.
    expect(await everywhere).toBeGreaterThanOrEqual(3)
    expect(await login).toBe('created')
  })
}

describeEngine('postgresql', 'a race on PostgreSQL', () => {
  const own = postgresOf(sharedPostgres)
  const strict = (isolation: string) =>
    own.server.pool({ options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}` })
  describe.each([
    ['pg', () => own.admin],
    ['pg, where the default isolation is repeatable read', () => strict('repeatable read')],
    ['pg, where the default isolation is serializable', () => strict('serializable')],
    ['Postgres.js', () => own.server.postgresJs()],
  ] as const)('through %s', (_, connect) => {
    let client: ReturnType<typeof connect>
    beforeAll(() => {
      client = connect()
    })
    races(() => ({ open: () => new PostgresStore(client), locks: own.locks }))
  })
})

describeEngine('mariadb', 'a race on MariaDB', () => {
  const own = mariadbOf(sharedMariadb)
  describe.each(['READ COMMITTED', 'REPEATABLE READ'])('where the default isolation is %s', isolation => {
    let pool: mysql.Pool
    beforeAll(() => {
      pool = own.server.pool()
      pool.on('connection', connection => connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`))
    })
    races(() => ({ open: () => new MysqlStore(pool), locks: own.locks }))
  })
})
