// Which statements the stores of database servers send. The connections here only note what they are asked, and answer as
// they are told; what a server makes of it is in shared-reads.test.ts and statements.test.ts.
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { type PostgresOptions, PostgresStore, type SqlStoreOptions } from 'coatcheck/stores/postgres'
import { expect, it } from 'vitest'
import { anonymous, NOW, newKey, newWriteId, record } from '../../support/sql/records.ts'

const CALL = { now: NOW }
type Sent = [text: string, values: readonly unknown[]]

/** What a statement that begins so is answered with: its rows, or how many it met. */
type Answers = (text: string, place: number) => unknown[][] | number | undefined

function postgres(answers: Answers = () => undefined, options: PostgresOptions = {}) {
  const sent: Sent[] = []
  /** The names under which statements were prepared. */
  const names: (string | undefined)[] = []
  const client = {
    async query({ name, text, values }: { name?: string; text: string; values: unknown[] }) {
      names.push(name)
      if (text.includes('clock_timestamp()) * 1000)::bigint') && text.startsWith('SELECT floor'))
        return { rows: [[`${Date.now()}`]], rowCount: 1 }
      sent.push([text, values])
      const given = answers(text, sent.length) ?? 0
      return typeof given === 'number' ? { rows: [], rowCount: given } : { rows: given, rowCount: given.length }
    },
    on() {},
    removeListener() {},
    release() {},
  }
  const pool = { connect: (answer: (error: unknown, given: object) => void) => answer(null, client) }
  return { store: new PostgresStore(pool as never, options), sent, names }
}

function mysql(answers: Answers = () => undefined, options: SqlStoreOptions = {}) {
  const sent: Sent[] = []
  /** The statements that came with options. */
  const laden: string[] = []
  const ask = async (asked: string | { sql: string; values: unknown[] }, values: unknown[] = []) => {
    const text = typeof asked === 'string' ? asked : asked.sql
    if (text.includes('CONNECTION_ID')) return [[[`${Date.now()}`, 7, 'root', 'here']]]
    sent.push([text, typeof asked === 'string' ? values : asked.values])
    if (typeof asked !== 'string') laden.push(text)
    const given = answers(text, sent.length) ?? 0
    return [typeof given === 'number' ? { affectedRows: given, serverStatus: 2 } : given]
  }
  const connection = { threadId: 7, config: {}, execute: ask, query: ask, release() {}, destroy() {} }
  return { store: new MysqlStore({ getConnection: async () => connection } as never, options), sent, laden }
}

const keys = (count: number) => Array.from({ length: count }, newKey)
const none = (text: string) => (text.startsWith('SELECT') ? [] : undefined)

it('asks PostgreSQL for one session by its key, for several by a list, and for 256 at the most', async () => {
  const { store, sent } = postgres(none)
  const [one, two, three] = keys(3) as [string, string, string]
  expect(await store.read(one, CALL)).toBe(null)
  expect(await Promise.all([two, three, two].map(key => store.read(key, CALL)))).toEqual([null, null, null])
  expect(sent).toEqual([
    [expect.stringMatching(/ WHERE id = \$1$/), [one]],
    [expect.stringMatching(/ WHERE id = ANY \(\$1::text\[\]\)$/), [`{${two},${three}}`]],
  ])
  sent.length = 0
  await Promise.all(keys(300).map(key => store.read(key, CALL)))
  expect(sent.map(([, [list]]) => String(list).split(',').length)).toEqual([256, 44])
})

it('asks MySQL for one session by its key, and for several by as few statements as there are sizes', async () => {
  const { store, sent } = mysql(none)
  for (const [count, places] of [
    [1, 1],
    [2, 4],
    [4, 4],
    [5, 16],
    [16, 16],
    [17, 64],
    [64, 64],
    [65, 256],
    [256, 256],
  ] as const) {
    const asked = keys(count)
    expect(await Promise.all(asked.map(key => store.read(key, CALL)))).toEqual(asked.map(() => null))
    const [[text, values]] = sent.splice(0) as [Sent]
    const list = Array(places).fill('?').join(', ')
    expect(text.split(' WHERE ')[1]).toBe(count === 1 ? 'id = ? LIMIT 1' : `id IN (${list}) LIMIT ${places}`)
    // The places that are left have the last key once more.
    expect(values).toEqual([...asked, ...Array(places - count).fill(asked.at(-1))])
  }
})

it('asks MySQL for sessions without options, which mysql2 would copy', async () => {
  const { store, sent, laden } = mysql(none)
  await store.read(newKey(), CALL)
  await Promise.all(keys(3).map(key => store.read(key, CALL)))
  expect(sent.length).toBe(2)
  expect(laden).toEqual([])
})

const stores = { PostgreSQL: postgres, MySQL: mysql }
/** The row of a verdict: nothing stands in the way. */
const free = [[0, null, null, null, 0, 1]]

it.each(Object.entries(stores))('makes a session live by one statement at %s', async (_, open) => {
  const { store, sent } = open(() => 1)
  expect(await store.create(anonymous(), {}, CALL)).toEqual({ outcome: 'created', ended: [] })
  expect(await store.create(record(), {}, CALL)).toEqual({ outcome: 'created', ended: [] })
  expect(await store.replace(newKey(), 1, record(), {}, CALL)).toEqual({ outcome: 'created', ended: [] })
  expect(sent.length).toBe(3)
})

it.each(Object.entries(stores))('tells from a second statement at %s why the first wrote nothing', async (_, open) => {
  const stale = [[0, null, null, null, 1, 1]]
  const { store, sent } = open(text => (text.startsWith('SELECT') ? stale : 0))
  expect(await store.create(record(), {}, CALL)).toMatchObject({ outcome: 'stale-login' })
  expect(sent.at(-1)![0]).toMatch(/^SELECT/)
})

it.each(Object.entries(stores))('asks %s once more where nothing stood in the way', async (_, open) => {
  const old = [[0, null, 1, null, 0, 1]]
  let writes = 0
  const { store, sent } = open(text => (text.startsWith('SELECT') ? old : writes++ === 0 ? 0 : 1))
  const calls = [
    () => store.create(anonymous(), {}, CALL),
    () => store.create(anonymous({ parent: newKey() }), {}, CALL),
    () => store.replace(newKey(), 1, anonymous(), {}, CALL),
  ]
  for (const call of calls) {
    writes = 0
    expect(await call()).toEqual({ outcome: 'created', ended: [] })
    // The write, why it wrote nothing, and the write.
    expect(sent.splice(0).map(([text]) => text.startsWith('SELECT'))).toEqual([false, true, false])
  }
})

it.each<[string, object]>([
  ['PostgreSQL', { code: '23505', severity: 'ERROR' }],
  ['MySQL', { errno: 1062, sqlState: '23000' }],
])('takes a key that is taken at %s for a reason to write nothing, and no other error', async (name, taken) => {
  const collision = [[1, null, 1, null, 0, 1]]
  const error: object[] = [taken]
  const { store } = stores[name as keyof typeof stores](text => {
    if (text.startsWith('SELECT')) return collision
    throw Object.assign(new Error('not written'), error[0])
  })
  expect(await store.replace(newKey(), 1, anonymous(), {}, CALL)).toMatchObject({ outcome: 'collision' })
  error[0] = { ...taken, code: '23514', errno: 4025 }
  await expect(store.replace(newKey(), 1, anonymous(), {}, CALL)).rejects.toMatchObject({
    operation: 'replace',
    outcome: 'not-applied',
    cause: { message: 'not written' },
  })
})

it.each([
  ['PostgreSQL', 12],
  // Its `replace` has the parent as a value.
  ['MySQL', 8],
] as const)('has %s prepare %i statements for all that make a session live', async (name, most) => {
  const { store, sent } = stores[name](() => 1)
  const has = (words: RegExp) => words.test(sent.at(-1)![0])
  /** Whether it may only be written beside rows that must not change meanwhile. */
  const isBound = ({ userId, parent }: SessionRecord) => userId !== null || parent !== null
  for (let round = 0; round < 2; round++)
    for (const parent of [null, newKey()])
      for (const next of [() => anonymous({ parent }), () => record({ parent })]) {
        await store.create(next(), {}, CALL)
        if (name === 'MySQL') expect(has(/ FOR UPDATE$/)).toBe(isBound(next()))
        expect(has(/_users. (AS )?u\b/)).toBe(next().userId !== null)
        expect(has(/p\.id = |p AS \(/)).toBe(parent !== null)
        for (const options of [{}, { forward: { salt: 'c2FsdA', until: NOW } }]) {
          await store.replace(newKey(), 1, next(), options, CALL)
          expect(has(/_users. (AS )?u\b/)).toBe(next().userId !== null)
          expect(has(/INSERT INTO .coatcheck_sessions. \(/)).toBe('forward' in options)
        }
      }
  expect(sent.length).toBe(24)
  expect(new Set(sent.map(([text]) => text)).size).toBe(most)
})

it('looks in a transaction of MySQL for a parent that the old session does not have', async () => {
  const old = [[0, null, 1, null, 0, 1]]
  let inTransaction = false
  const { store, sent } = mysql(text => {
    if (text === 'START TRANSACTION') inTransaction = true
    if (text.includes('wait_timeout')) return text.startsWith('SELECT') ? [['28800']] : 0
    return text.startsWith('SELECT') ? (text.includes('FOR UPDATE') ? [['parent']] : old) : inTransaction ? 1 : 0
  })
  const next = anonymous({ parent: newKey() })
  expect(await store.replace(newKey(), 1, next, {}, CALL)).toMatchObject({ outcome: 'created' })
  const texts = sent.map(([text]) => text)
  const begun = texts.indexOf('START TRANSACTION')
  expect(begun).toBeGreaterThan(0)
  expect(texts.findIndex(text => text.startsWith('COMMIT'))).toBeGreaterThan(begun)
  // What decides is locked first.
  expect(texts[begun + 1]).toMatch(/WHERE p\.id = \? LIMIT 1 FOR UPDATE$/)
})

it('gives a first user of MySQL a row to lock, and asks again', async () => {
  let rows = 0
  const { store, sent } = mysql(text => {
    if (text.startsWith('INSERT IGNORE')) {
      rows += 1
      return 1
    }
    return text.startsWith('SELECT') ? free : rows
  })
  expect(await store.create(record(), {}, CALL)).toMatchObject({ outcome: 'created' })
  expect(sent.map(([text]) => text.split(' ').slice(0, 2).join(' '))).toEqual([
    'INSERT INTO',
    'INSERT IGNORE',
    'INSERT INTO',
  ])
})

it('has MySQL bound the COMMIT of what makes a session live, and of nothing else', async () => {
  const { store, sent } = mysql(text => {
    if (text.startsWith('SELECT @@')) return [['28800']]
    if (text.startsWith('SELECT id')) return []
    return text.startsWith('SELECT') ? free : 1
  })
  /** How often the time was bounded; the first statement of a transaction locks the user's row. */
  const bounds = () => {
    const texts = sent.splice(0)
    const first = texts[texts.findIndex(([text]) => text === 'START TRANSACTION') + 1]![0]
    expect(first).toMatch(/^INSERT INTO `coatcheck_sessions_users` .* ON DUPLICATE KEY UPDATE floor = /)
    return texts.filter(([text]) => text.startsWith('SET SESSION wait_timeout')).length
  }
  const limit = { max: 1, onLimit: 'end-oldest' } as const
  expect(await store.create(record(), { limit }, CALL)).toEqual({ outcome: 'created', ended: [] })
  expect(bounds()).toBe(2)
  expect(await store.deleteUser('42', { minPasswordVersionUntil: NOW }, CALL)).toBe(1)
  expect(bounds()).toBe(0)
})

it.each([
  ['bigint', 'CAST(? AS UNSIGNED)', 'CAST(user_id AS CHAR)'],
  ['string', '?', 'user_id'],
] as const)('has MySQL compare user IDs of the kind %s without a detour by floats', async (userIds, place, cell) => {
  const found = (text: string) =>
    /^SELECT \S*user_id/.test(text) ? [['42', 'acme', '7']] : text.startsWith('SELECT') ? [] : 1
  const { store, sent } = mysql(found, { userIds })
  await store.listUser('42', 'session', CALL)
  expect(sent[0]![1].slice(0, 3)).toEqual([userIds === 'string' ? Buffer.from('42') : '42', Buffer.from(''), 'session'])
  expect(sent[0]![0]).toContain(` WHERE user_id = ${place} AND tenant = ? AND kind = ? `)
  await store.sweep!(10, CALL)
  const [find, remove] = sent.slice(-2) as [Sent, Sent]
  expect(find[0]).toContain(`SELECT ${cell}, tenant, expires_at FROM `)
  expect(remove[0]).toContain(` WHERE (user_id, tenant) IN ((${place}, ?), (${place}, ?), `)
})

it('ends the sessions of a user a thousand at a time, and counts no forwards', async () => {
  const left = [1000, 5, 0]
  const rest = [1000, 3]
  const { store, sent } = mysql(text => {
    if (!text.startsWith('DELETE')) return 1
    return (text.includes("kind = 'session'") ? left : rest).shift()!
  })
  expect(await store.deleteUser('42', { minPasswordVersionUntil: NOW }, CALL)).toBe(1005)
  expect(sent.filter(([text]) => text.startsWith('COMMIT')).length).toBe(3)
  const found = [
    ['1000', '1000'],
    ['5', '1000'],
    ['0', '3'],
  ]
  const other = postgres(text => (text.startsWith('WITH RECURSIVE') ? [found.shift()!] : 1))
  expect(await other.store.deleteUser('42', { minPasswordVersionUntil: NOW }, CALL)).toBe(1005)
  expect(other.sent.filter(([text]) => text === 'COMMIT').length).toBe(3)
})

it('has PostgreSQL end sessions only where there are more than the limit allows', async () => {
  const key = newKey()
  const oldest: string[][] = []
  const { store, sent } = postgres(text =>
    text.startsWith('SELECT id') ? oldest : text.startsWith('SELECT') ? free : text.startsWith('DELETE') ? [[key]] : 1,
  )
  const limit = { max: 1, onLimit: 'end-oldest' } as const
  const ends = () => sent.splice(0).filter(([text]) => text.startsWith('DELETE')).length
  expect(await store.create(record(), { limit }, CALL)).toEqual({ outcome: 'created', ended: [] })
  expect(ends()).toBe(0)
  // Another call ends one of the two before this one does.
  oldest.push([key], [newKey()])
  expect(await store.create(record(), { limit }, CALL)).toEqual({ outcome: 'created', ended: [key] })
  expect(ends()).toBe(1)
})

it.each<[PostgresOptions, boolean]>([
  [{}, true],
  [{ prepare: true }, true],
  [{ prepare: false }, false],
])('prepares statements of PostgreSQL with %j: %s', async (options, prepares) => {
  const { store, names } = postgres(none, options)
  await store.read(newKey(), CALL)
  expect(names.map(name => name !== undefined)).toEqual([prepares])
  const asked: boolean[] = []
  const unsafe = (_text: string, _values: unknown[], { prepare }: { prepare: boolean }) => {
    asked.push(prepare)
    return { raw: async () => Object.assign([], { count: 0 }) }
  }
  await new PostgresStore(Object.assign(() => {}, { unsafe, begin() {} }) as never, options).read(newKey(), CALL)
  expect(asked).toEqual([prepares])
})

it('counts the live sessions of PostgreSQL', async () => {
  const { store, sent } = postgres(() => [['12']])
  expect(await store.count(CALL)).toBe(12)
  expect(sent).toEqual([[expect.stringMatching(/^SELECT count\(\*\) FROM .* AND expires_at \+ 0 > \$1$/), [NOW]]])
  const failing = postgres(() => {
    throw Object.assign(new Error('no such table'), { code: '42P01', severity: 'ERROR' })
  })
  await expect(failing.store.count(CALL)).rejects.toMatchObject({ operation: 'count', outcome: 'not-applied' })
})

it('prints the statements that create the tables', () => {
  expect(MysqlStore.ddl({ table: 'visits' })).toContain('CREATE TABLE IF NOT EXISTS `visits_users`')
  expect(PostgresStore.ddl({ table: 'visits' })).toContain('CREATE TABLE IF NOT EXISTS "visits_users"')
})

it.each([
  ['PostgreSQL', "set_config('lock_timeout', "],
  ['MySQL', ' + (UNIX_TIMESTAMP(SYSDATE(6)) * 1000 > ?) > 0'],
] as const)('has %s refuse each write that comes after its deadline', async (name, words) => {
  const { store, sent } = stores[name](() => 1)
  const key = newKey()
  const change = { data: '1', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
  expect(await store.touch(key, NOW, NOW + 9e6, CALL)).not.toBe('gone')
  expect(await store.update(key, 1, change, CALL)).not.toBe('gone')
  expect(await store.delete(key, CALL)).toBe(true)
  await store.create(anonymous(), {}, CALL)
  await store.create(record(), {}, CALL)
  await store.replace(key, 1, record(), {}, CALL)
  expect(sent.map(([text]) => text.includes(words))).toEqual(Array(6).fill(true))
})
