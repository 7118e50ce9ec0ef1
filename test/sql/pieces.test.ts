// A logout everywhere of more sessions than one transaction ends.
import { expect, it } from 'vitest'
import { DIALECTS, onEach } from './databases.ts'
import { call, isLive, NOW, record } from './records.ts'

onEach(DIALECTS, 'a logout everywhere in pieces on', get => {
  it('counts the live sessions of all pieces, and spares the successor of the excepted session in each', async () => {
    const { open, fill, number } = get()
    const every10thIsOver = `CASE WHEN n % 10 = 0 THEN ${NOW - 1} ELSE ${NOW + 9e6} END`
    await fill({ count: 35, prefix: 'many', user: '42', expiresAt: every10thIsOver })
    const store = Object.assign(open(), { batch: 10 })
    const [old, next, of43] = [record(), record(), record({ userId: '43' })]
    for (const each of [old, of43]) await store.create(each, call())
    await store.replace(old.key, 1, next, { forward: { salt: 'c2FsdA', until: NOW } }, call())
    const everybody = { minPasswordVersionUntil: 0, exceptKey: old.key }
    expect(await store.deleteUser('42', everybody, call())).toBe(32)
    expect(await number(`SELECT count(*) FROM coatcheck_sessions WHERE user_id = '42'`)).toBe(1)
    for (const { key } of [next, of43]) expect(await isLive(store, key)).toBe(true)
  })
})
