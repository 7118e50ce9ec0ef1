// D1: what is committed together, and what becomes of calls whose answers are lost.
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { expect, it } from 'vitest'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { started } from '../../support/started.ts'
import { startD1 } from '../d1.ts'
import { call, change, forward, record } from '../records.ts'
import { LATE, WHENEVER } from '../writes.ts'

let user = 9000
const { 'new anonymous session': _, ...OF_A_USER } = LATE
const WRITES = { ...OF_A_USER, ...WHENEVER }

/** What a repeated call gets, where the first one was run: a logout has nothing left to end. */
const FIRST_ANSWERS: Record<string, unknown> = {
  update: 'updated',
  touch: 'touched',
  logout: false,
  'logout everywhere': 0,
}

describeEngine('d1', 'sessions in D1', () => {
  let store: D1Store
  const own = started(async () => {
    const server = await startD1()
    store = new D1Store(server.database)
    await store.migrate()
    return server
  })
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
      prepare: sql => own().database.prepare(sql),
      batch: statements => batch(() => own().database.batch(statements)),
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
      await own().run(`CREATE TRIGGER "no ${verb}" AFTER ${verb} ON coatcheck_sessions
        WHEN ${verb === 'INSERT' ? 'NEW' : 'OLD'}.user_id = '${one.userId}' BEGIN SELECT RAISE(ABORT, 'not today'); END`)
    try {
      expect(await failure(write(store, one, other))).toMatchObject({ outcome: 'not-applied' })
    } finally {
      for (const verb of verbs) await own().run(`DROP TRIGGER "no ${verb}"`)
    }
    expect(await store.read(one.key, call())).toEqual(one)
    expect(await store.read(other.key, call())).toBe(null)
    expect(await store.create(other, call())).toBe('created')
  })

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
