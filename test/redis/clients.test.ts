// One story with every client and shape; the rules in full are the conformance suite's business.
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { anywhere, HOUR, recordOf, T0, writeId } from '../support/redis/records.ts'
import { everyShape } from '../support/redis/shapes.ts'
import { describeEngine } from '../support/services/engines.ts'

describeEngine('redis', 'the Redis store with every client', () => {
  it.each(everyShape())('keeps, changes, moves and ends sessions with %s', async (name, open) => {
    const { client, close } = await open()
    const store = new RedisStore(client, { prefix: `${name.replaceAll(' ', '-')}:` })
    const at = { now: T0 }
    const first = recordOf(store, '42', { data: 'hé\n"x"', userName: 'ada l %', passwordVersion: 7 })
    expect(await store.create(first, at)).toBe('created')
    expect(await store.create(first, at)).toBe('created')
    expect(await store.create({ ...first, writeId: writeId() }, at)).toBe('collision')
    expect(await store.read(first.key, { now: T0 })).toEqual(first)
    expect(await store.read(first.key, { now: first.expiresAt })).toBe(null)

    const change = { data: 'n', seenAt: T0 + 5, expiresAt: T0 + 99 * HOUR, writeId: writeId() }
    expect(await store.update(first.key, 1, change, { now: T0 })).toBe('updated')
    expect(await store.update(first.key, 1, change, { now: T0 })).toBe('updated')
    expect(await store.update(first.key, 1, { ...change, writeId: writeId() }, { now: T0 })).toBe('conflict')
    expect(await store.touch(first.key, T0 + 7, T0, { now: T0 })).toBe('touched')
    const changed = { data: 'n', version: 2, writeId: change.writeId, seenAt: T0 + 7 }
    expect(await store.read(first.key, { now: T0 })).toEqual({
      ...first,
      ...changed,
      expiresAt: first.absoluteExpiresAt,
    })

    const next = recordOf(store, '42')
    const forward = { salt: 's', until: T0 + 10 }
    expect(await store.replace(first.key, 2, next, { forward }, { now: T0 })).toBe('created')
    expect(await store.read(first.key, { now: T0 })).toEqual({ movedTo: next.key, ...forward })
    expect((await store.listUser('42', 'session', { now: T0 })).map(({ key }) => key)).toEqual([next.key])
    expect(await store.delete(first.key, { now: T0 })).toBe(true)
    expect(await store.read(next.key, { now: T0 })).toBe(null)

    const anonymous = recordOf(store, null)
    await store.create(anonymous, at)
    const login = recordOf(store, '43')
    expect(await store.replace(anonymous.key, 1, login, {}, at)).toBe('created')
    expect(await store.replace(anonymous.key, 1, login, {}, at)).toBe('created')
    expect(await store.read(anonymous.key, { now: T0 })).toBe(null)

    expect(
      await store.deleteUser('43', { minPasswordVersion: 3, minPasswordVersionUntil: T0 + 1000 }, { now: T0 }),
    ).toBe(1)
    expect(await store.create(recordOf(store, '43'), at)).toBe('stale-login')
    const orphan = recordOf(store, '43', { passwordVersion: 3, parent: anywhere() })
    expect(await store.create(orphan, at)).toBe('orphan')
    await close()
  })
})
