// D1: what is committed together, and what becomes of calls whose answers are late or lost.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { soon } from '../../support/deadlines.ts'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startD1 } from '../d1.ts'
import { NOW, newWriteId, record } from '../records.ts'

const call = () => ({ now: NOW, deadline: soon() })
let user = 9000
const change = () => ({ data: '"late"', seenAt: NOW + 5, expiresAt: NOW + 9e6, writeId: newWriteId() })
const forward = { salt: 'c2FsdA', until: NOW }

type Write = (store: Store, one: SessionRecord, other: SessionRecord) => Promise<unknown>
const WRITES: Record<string, Write> = {
  update: (store, one) => store.update(one.key, 1, change(), call()),
  touch: (store, one) => store.touch(one.key, NOW + 5, NOW + 9e6, call()),
  logout: (store, one) => store.delete(one.key, call()),
  login: (store, _, other) => store.create(other, call()),
  'new ID': (store, one, other) => store.replace(one.key, 1, other, {}, call()),
  'new ID with a forward': (store, one, other) => store.replace(one.key, 1, other, { forward }, call()),
  'logout everywhere': (store, one) =>
    store.deleteUser(one.userId!, { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 }, call()),
}

/** What a repeated call gets, where the first one was run: a logout has nothing left to end. */
const FIRST_ANSWERS: Record<string, unknown> = {
  update: 'updated',
  touch: 'touched',
  logout: false,
  'logout everywhere': 0,
}

describeEngine('d1', 'sessions in D1', () => {
  let server: Awaited<ReturnType<typeof startD1>>
  let store: D1Store
  beforeAll(async () => {
    server = await startD1()
    store = new D1Store(server.database)
    await store.migrate()
  })
  afterAll(() => server?.stop())
  /** Two sessions of a new user, of which the first is stored. */
  const begun = async () => {
    const userId = `${++user}`
    const [one, other] = [record({ userId }), record({ userId })]
    await store.create(one, call())
    return { one, other }
  }
  /** A store over the binding, with something before or behind each batch. */
  const around = (batch: (send: () => ReturnType<D1Client['batch']>) => ReturnType<D1Client['batch']>) =>
    new D1Store({
      prepare: sql => server.database.prepare(sql),
      batch: statements => batch(() => server.database.batch(statements)),
    })

  it('leaves the second old session as it is when a new ID is asked for again under another old key', async () => {
    const { one, other: next } = await begun()
    const { one: second } = await begun()
    for (const old of [one, second]) expect(await store.replace(old.key, 1, next, { forward }, call())).toBe('created')
    expect(await store.read(second.key, call())).toEqual(second)
    expect(await store.read(one.key, call())).toMatchObject({ movedTo: next.key })
    expect(await store.replace(second.key, 1, next, {}, call())).toBe('created')
    expect(await store.read(second.key, call())).toEqual(second)
    // Nor is anything left of how its batch knew what it had written.
    expect(await store.read(next.key, call())).toEqual(next)
  })

  it.each(Object.entries(WRITES))('writes nothing of a %s when one statement of it fails', async (name, write) => {
    const { one, other } = await begun()
    // Whatever is written, the last statement that touches a row of this user is the one that fails.
    const verbs = name === 'login' ? ['INSERT'] : ['UPDATE', 'DELETE']
    for (const verb of verbs)
      await server.run(`CREATE TRIGGER "no ${verb}" AFTER ${verb} ON coatcheck_sessions
        WHEN ${verb === 'INSERT' ? 'NEW' : 'OLD'}.user_id = '${one.userId}' BEGIN SELECT RAISE(ABORT, 'not today'); END`)
    try {
      expect(await failure(write(store, one, other))).toMatchObject({ outcome: 'not-applied' })
    } finally {
      for (const verb of verbs) await server.run(`DROP TRIGGER "no ${verb}"`)
    }
    expect(await store.read(one.key, call())).toEqual(one)
    expect(await store.read(other.key, call())).toBe(null)
    expect(await store.create(other, call())).toBe('created')
  })

  it.each(['update', 'login', 'new ID', 'new ID with a forward'])(
    'refuses a %s that comes minutes late, and names both clocks',
    async name => {
      const { one, other } = await begun()
      const real = Date.now.bind(Date)
      const behind = vi.spyOn(Date, 'now').mockImplementation(() => real() - 400_000)
      const error = await failure(WRITES[name]!(store, one, other)).finally(() => behind.mockRestore())
      expect(error).toMatchObject({ outcome: 'not-applied' })
      expect(String(error.cause)).toMatch(/came too late: the clock of the database says .*, that of this process /)
      expect(await store.read(one.key, call())).toEqual(one)
      expect(await store.read(other.key, call())).toBe(null)
    },
  )

  it.each(Object.entries(WRITES))(
    'does not know of a %s whose answer was lost; repeated, it gets the first answer',
    async (name, write) => {
      let isLost = true
      const lossy = around(async send => {
        const answer = await send()
        if (isLost) throw new Error('D1_ERROR: Network connection lost.')
        return answer
      })
      const { one, other } = await begun()
      const drawn = change()
      const asked = () => (name === 'update' ? lossy.update(one.key, 1, drawn, call()) : write(lossy, one, other))
      expect(await failure(asked())).toMatchObject({ status: 503, outcome: 'unknown' })
      isLost = false
      expect(await asked()).toEqual(FIRST_ANSWERS[name] ?? 'created')
    },
  )
})
