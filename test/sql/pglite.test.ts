// PostgreSQL in the process of the application, by its own adapter.
import { createRequire } from 'node:module'
import { SessionManager } from 'coatcheck'
import { type Pglite, PostgresStore, pglite } from 'coatcheck/stores/postgres'
import { expect, it, vi } from 'vitest'
import { within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { describeEngine } from '../support/services/engines.ts'
import { started } from '../support/started.ts'
import { NOW, record } from './records.ts'
import { partOfTheSuite } from './suite.ts'

const drivers = createRequire(new URL('../support/drivers/package.json', import.meta.url))

describeEngine('other clients', 'PostgresStore on PGlite', () => {
  const database = started<Pglite & { close(): Promise<void> }>(
    async () => new (drivers('@electric-sql/pglite').PGlite)(),
  )
  const open = async () => {
    const store = new PostgresStore(pglite(database()))
    await store.migrate()
    return store
  }
  partOfTheSuite(() => ({ stores: new PostgresStore(pglite(database())), run: sql => database().query(sql) }), {
    long: false,
  })

  it('waits for a transaction of the application, and is not undone with it', async () => {
    const sessions = new SessionManager({ store: await open(), sweepInterval: false, storeTimeout: '20s' })
    const session = await sessions.create({ user: { id: 42, name: 'ada' } })
    const undone = new Error('undone')
    let ended: Promise<unknown> | undefined
    const application = database().transaction(async tx => {
      ended = Promise.all([sessions.destroy(session), sessions.invalidateUser(7)])
      await tx.query('CREATE TABLE orders (id int)')
      throw undone
    })
    await expect(application).rejects.toBe(undone)
    await ended
    expect(await sessions.get(session.secret)).toBeNull()
  })

  it('begins no transaction that was given up while it waited', async () => {
    const store = await open()
    const one = record({ userId: '4711' })
    await store.create(one, { now: NOW })
    let free = () => {}
    const application = database().transaction(() => new Promise<void>(resolve => (free = resolve)))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
    const everybody = { minPasswordVersionUntil: NOW }
    const givenUp = failure(store.deleteUser('4711', everybody, { now: NOW, deadline: within(100) }))
    // The store no longer waits for it.
    await vi.advanceTimersByTimeAsync(5000)
    await givenUp
    vi.useRealTimers()
    free()
    await application
    expect(await store.listUser('4711', 'session', { now: NOW })).toEqual([one])
  })
})
