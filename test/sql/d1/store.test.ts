// D1: what is committed together, and what becomes of calls whose answers are late or lost.
import type { SessionStoreError, Store } from 'coatcheck'
import { SessionStoreError as StoreError } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { within } from '../../support/deadlines.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startD1 } from '../d1.ts'
import { type D1StoreServer, startD1Store } from '../d1-store.ts'
import { isLive, NOW, newKey, newWriteId, record } from '../records.ts'

let user = 9000
const ofNewUser = () => record({ userId: `${++user}` })
const change = () => ({ data: '"late"', seenAt: NOW + 5, expiresAt: NOW + 9e6, writeId: newWriteId() })
const forward = { salt: 'c2FsdA', until: NOW }

/** The error of a call that has to fail. */
const failure = (call: Promise<unknown>): Promise<SessionStoreError> =>
  call.then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => {
      expect(error).toBeInstanceOf(StoreError)
      return error
    },
  )

type Write = (store: Store, one: SessionRecord, other: SessionRecord, deadline: number) => Promise<unknown>
const WRITES: Record<string, Write> = {
  update: (store, one, _, deadline) => store.update(one.key, 1, change(), { now: NOW, deadline }),
  touch: (store, one, _, deadline) => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline }),
  logout: (store, one, _, deadline) => store.delete(one.key, { now: NOW, deadline }),
  login: (store, _, other, deadline) => store.create(other, { now: NOW, deadline }),
  'new ID': (store, one, other, deadline) => store.replace(one.key, 1, other, {}, { now: NOW, deadline }),
  'new ID with a forward': (store, one, other, deadline) =>
    store.replace(one.key, 1, other, { forward }, { now: NOW, deadline }),
  'logout everywhere': (store, one, _, deadline) =>
    store.deleteUser(
      one.userId!,
      { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 },
      { now: NOW, deadline },
    ),
}

/** What a repeated call gets, where the first one was run: a logout has nothing left to end. */
const FIRST_ANSWERS: Record<string, unknown> = {
  update: 'updated',
  touch: 'touched',
  logout: false,
  'logout everywhere': 0,
}

describeEngine('d1', 'sessions in D1', () => {
  let server: D1StoreServer
  let store: ReturnType<D1StoreServer['open']>
  beforeAll(async () => {
    server = await startD1Store()
    store = server.open()
    await store.migrate()
  })
  afterAll(() => server?.stop())

  it('leaves the second old session as it is when a new ID is asked for again under another old key', async () => {
    const [one, second, next] = [ofNewUser(), ofNewUser(), ofNewUser()]
    for (const each of [one, second]) await store.create(each, { now: NOW })
    const repeated = { ...next, userId: one.userId }
    expect(await store.replace(one.key, 1, repeated, { forward }, { now: NOW })).toBe('created')
    expect(await store.replace(second.key, 1, repeated, { forward }, { now: NOW })).toBe('created')
    expect(await store.read(second.key, { now: NOW })).toEqual(second)
    expect(await store.read(one.key, { now: NOW })).toMatchObject({ movedTo: next.key })
    expect(await store.replace(second.key, 1, repeated, {}, { now: NOW })).toBe('created')
    expect(await isLive(store, second.key)).toBe(true)
  })

  it('keeps a write ID as it was given, also that of a record that another replaced', async () => {
    const [one, next] = [ofNewUser(), ofNewUser()]
    await store.create(one, { now: NOW })
    await store.replace(one.key, 1, { ...next, userId: one.userId }, { forward }, { now: NOW })
    expect(await store.read(next.key, { now: NOW })).toEqual({ ...next, userId: one.userId })
    expect(await server.number(`SELECT count(*) FROM coatcheck_sessions WHERE write_id LIKE '!%'`)).toBe(0)
  })

  it.each(Object.keys(WRITES))('writes nothing of a %s when one statement of it fails', async name => {
    const one = ofNewUser()
    const other = record({ userId: one.userId })
    await store.create(one, { now: NOW })
    await store.update(one.key, 1, { ...change(), data: '"before"', writeId: newWriteId() }, { now: NOW })
    const before = await store.read(one.key, { now: NOW })
    // Whatever is written, the last statement that touches a row of this user is the one that fails.
    const abort = (verb: string, row: string) =>
      server.run(`CREATE TRIGGER "no ${verb}" AFTER ${verb} ON coatcheck_sessions WHEN ${row}.user_id = '${one.userId}'
        BEGIN SELECT RAISE(ABORT, 'not today'); END`)
    await abort('UPDATE', 'OLD')
    await abort('DELETE', 'OLD')
    // It is one statement.
    if (name === 'login') await abort('INSERT', 'NEW')
    try {
      const outcome = await WRITES[name]!(store, { ...one, version: 2 }, other, within(5000)).then(
        answer => JSON.stringify(answer),
        error => error.outcome,
      )
      expect(['not-applied', '"conflict"']).toContain(outcome)
    } finally {
      for (const verb of ['UPDATE', 'DELETE', 'INSERT']) await server.run(`DROP TRIGGER IF EXISTS "no ${verb}"`)
    }
    expect(await store.read(one.key, { now: NOW })).toEqual(before)
    expect(await store.read(other.key, { now: NOW })).toBe(null)
    expect(await store.create(other, { now: NOW })).toBe('created')
  })
})

describeEngine('d1', 'D1 that answers late or not', () => {
  let server: Awaited<ReturnType<typeof startD1>>
  let direct: D1Store
  beforeAll(async () => {
    server = await startD1()
    direct = new D1Store(server.database)
    await direct.migrate()
  })
  afterAll(() => server?.stop())
  /** The binding, with something before or behind each batch. */
  const around = (batch: (send: () => ReturnType<D1Client['batch']>) => ReturnType<D1Client['batch']>): D1Client => ({
    prepare: sql => server.database.prepare(sql),
    batch: statements => batch(() => server.database.batch(statements)),
  })

  const live: Record<string, Write> = Object.fromEntries(
    Object.entries(WRITES).filter(([name]) => /login|new ID|update/.test(name)),
  )
  it.each(Object.entries(live))('refuses a %s that comes minutes late, and names both clocks', async (_, write) => {
    const one = ofNewUser()
    const other = record({ userId: one.userId })
    await direct.create(one, { now: NOW })
    const real = Date.now.bind(Date)
    const behind = vi.spyOn(Date, 'now').mockImplementation(() => real() - 400_000)
    try {
      const error = await failure(write(new D1Store(around(send => send())), one, other, within(5000)))
      expect(error).toMatchObject({ outcome: 'not-applied' })
      expect(String(error.cause)).toMatch(/came too late: the clock of the database says .*, that of this process /)
    } finally {
      behind.mockRestore()
    }
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
    expect(await direct.read(other.key, { now: NOW })).toBe(null)
  })

  it.each(Object.entries(WRITES))(
    'does not know of a %s whose answer was lost; repeated, it gets the first answer',
    async (name, write) => {
      let isLost = false
      const store = new D1Store(
        around(async send => {
          const answer = await send()
          if (isLost) throw new Error('D1_ERROR: Network connection lost.')
          return answer
        }),
      )
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await direct.create(one, { now: NOW })
      await store.touch(newKey(), NOW, NOW, { now: NOW })
      const drawn = change()
      const call = () =>
        name === 'update'
          ? store.update(one.key, 1, drawn, { now: NOW, deadline: within(5000) })
          : write(store, one, other, within(5000))
      isLost = true
      expect(await failure(call())).toMatchObject({ status: 503, outcome: 'unknown' })
      isLost = false
      expect(await call()).toEqual(FIRST_ANSWERS[name] ?? 'created')
    },
  )

  it.each(['D1 DB is overloaded. Requests queued for too long.', 'D1 DB is overloaded. Too many requests queued.'])(
    'knows that nothing was applied, and does not ask again, when D1 says: %s',
    async message => {
      let asked = 0
      const store = new D1Store(
        around(async () => {
          asked += 1
          throw new Error(`D1_ERROR: ${message}`)
        }),
      )
      const error = await failure(store.delete(newKey(), { now: NOW }))
      expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: `D1_ERROR: ${message}` } })
      expect(asked).toBe(1)
    },
  )
})
