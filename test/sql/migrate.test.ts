// Tables: how they are made, what is said of others that have their names, and what an application may do with them.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { compileWorker } from '../support/compile-worker.ts'
import { started } from '../support/started.ts'
import { DIALECTS, onEach } from './databases.ts'
import type { Migration } from './migrate-worker.ts'
import { isLive, NOW, record } from './records.ts'

const CALL = { now: NOW }
const worker = started(() => compileWorker('sql/migrate-worker'))

/** What ten processes say that call `migrate()` at once. */
async function tenProcesses(migration: Migration): Promise<unknown[]> {
  const children = Array.from({ length: 10 }, () => fork(worker().path, { stdio: 'inherit' }))
  await Promise.all(children.map(child => once(child, 'message')))
  const answers = children.map(child => once(child, 'message').then(([answer]) => answer))
  for (const child of children) child.send(migration)
  const all = await Promise.all(answers)
  for (const child of children) child.disconnect()
  return all
}

/** A user ID of the application's table as text. */
const AS_TEXT = { PostgreSQL: 'p.id::text', MariaDB: 'CAST(p.id AS CHAR)', SQLite: 'CAST(p.id AS TEXT)', D1: '' }

onEach(DIALECTS, 'a migration of', (get, name) => {
  it('creates nothing when a store is made, and a call without the tables or a column says what to call', async () => {
    const { open, run } = get()
    await run('CREATE TABLE ancient (id VARCHAR(46) NOT NULL)')
    for (const [table, missing] of [
      ['untouched', 'untouched'],
      ['ancient', '(?:ancient|kind|parent_key)'],
    ] as const) {
      const message = expect.stringMatching(new RegExp(`${missing}.*call \`await store\\.migrate\\(\\)\``))
      const refusal = { code: 'ERR_SESSION_STORE', outcome: 'not-applied', cause: { message } }
      await expect(open({ table }).read(record().key, CALL)).rejects.toMatchObject(refusal)
      await expect(open({ table }).create(record(), CALL)).rejects.toMatchObject(refusal)
    }
  })

  it('is looked for without creating anything', async () => {
    const { open, run } = get()
    const store = open({ table: 'looked_for' })
    for (let count = 0; count < 2; count++) expect(await store.isMigrated()).toBe(false)
    await store.migrate()
    expect(await store.isMigrated()).toBe(true)
    await run('CREATE TABLE looks_alike (id INTEGER NOT NULL)')
    await expect(open({ table: 'looks_alike' }).isMigrated()).rejects.toThrow(/column kind is missing/)
  })

  it('keeps what is there when it is called again, by ten processes at once too', async () => {
    const { open, url } = get()
    expect(await tenProcesses({ url, table: 'ten' })).toEqual(Array(10).fill('done'))
    const store = open({ table: 'ten' })
    const one = record()
    await store.create(one, CALL)
    await store.migrate()
    expect(await isLive(store, one.key)).toBe(true)
  })

  it('finds nothing to do where the printed schema was run by hand, also under words of the language', async () => {
    const { open, run, ddl } = get()
    for (const statement of ddl({ table: 'order' }).split(';\n')) if (statement.trim()) await run(statement)
    const store = open({ table: 'order' })
    expect(await store.isMigrated()).toBe(true)
    await store.migrate()
    expect(await store.create(record(), CALL)).toBe('created')
    expect(await store.deleteUser('42', { minPasswordVersionUntil: NOW }, CALL)).toBe(1)
  })

  it('names what is different in a table of another schema', async () => {
    const { open, run } = get()
    await run('CREATE TABLE older (id INTEGER NOT NULL, kind INTEGER, must_have INTEGER NOT NULL)')
    await expect(open({ table: 'older' }).migrate()).rejects.toThrow(
      /table .*older.* has another schema.*column id is .*; column kind is .*; column parent_key is missing;.*column must_have is unknown, NOT NULL, and has no default/,
    )
  })

  it('names a column that may not be empty, though no session of a visitor has it', async () => {
    const { open, run, ddl } = get()
    const strict = ddl({ table: 'strict' }).replace(/(user_name [^\n]*?),\n/, '$1 NOT NULL,\n')
    for (const statement of strict.split(';\n')) if (statement.trim()) await run(statement)
    await expect(open({ table: 'strict' }).migrate()).rejects.toThrow(/: column user_name is NOT NULL$/)
  })

  it('accepts columns of the application that a login can leave out, and no others', async () => {
    const { open, run } = get()
    const store = open({ table: 'wider' })
    await store.migrate()
    await run('ALTER TABLE wider ADD COLUMN shop VARCHAR(9)')
    await run('ALTER TABLE wider ADD COLUMN visits INTEGER NOT NULL DEFAULT 0')
    if (name === 'PostgreSQL') await run('ALTER TABLE wider ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY')
    await store.migrate()
    expect(await store.create(record(), CALL)).toBe('created')
    await run('CREATE TABLE narrow (id INTEGER, shop INTEGER NOT NULL, visits INTEGER NOT NULL DEFAULT 0)')
    const refused = open({ table: 'narrow' }).isMigrated()
    await expect(refused).rejects.toThrow(/column shop is unknown, NOT NULL, and has no default$/)
  })

  it('makes tables that join with those of the application', async () => {
    const { open, run, number } = get()
    await run('CREATE TABLE people (id DECIMAL(20) PRIMARY KEY, name VARCHAR(20))')
    await run("INSERT INTO people VALUES (9007199254740993, 'max'), (9007199254740992, 'other')")
    await open().create(record({ userId: '9007199254740993' }), CALL)
    const join = `FROM people p JOIN coatcheck_sessions s ON s.user_id = ${AS_TEXT[name]}`
    expect(await number(`SELECT count(*) ${join}`)).toBe(1)
    expect(await number(`SELECT count(*) ${join} WHERE name = 'max'`)).toBe(1)
  })

  if (name !== 'SQLite')
    it('uses a schema of its own', async () => {
      const { open, run, number } = get()
      await run(`CREATE SCHEMA of_its_own`)
      const store = open({ schema: 'of_its_own' })
      await store.migrate()
      expect(await store.create(record(), CALL)).toBe('created')
      expect(await number('SELECT count(*) FROM of_its_own.coatcheck_sessions')).toBe(1)
    })

  if (name === 'PostgreSQL')
    it('names a collation that does not compare keys by bytes', async () => {
      const { open, run, ddl } = get()
      await run(ddl({ table: 'collated' }).replace('id text COLLATE "C"', 'id text'))
      await expect(open({ table: 'collated' }).migrate()).rejects.toThrow('column id is text, not text COLLATE "C"')
    })
})
