// examples/kv-store.mjs over a database: the whole suite of the contract, and what it does not ask.
import { SessionManager, type Store } from 'coatcheck'
import { newUserId, testStore } from 'coatcheck/custom-store/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Driver, type Item, KvStore } from '../../../examples/kv-store.mjs'
import type { KeyValues } from '../../support/services/key-values.ts'

const MINUTE = 60_000
const INITIAL = () => ({ n: 0 })
const times = (count: number) => Array.from({ length: count }, (_, index) => index)

/** What a manager needs to be patient on a busy machine. */
export const managerOf = (store: Store) =>
  new SessionManager({ store, sweepInterval: false, storeTimeout: '1h', userIds: 'string', initial: INITIAL })

/** @param open two connections to one database, asked once */
export function kvScenes(
  open: () => Promise<[Driver, Driver]> | [Driver, Driver],
  { without, logins = 1200, ...options }: { runs?: number; rounds?: number; without?: RegExp; logins?: number } = {},
) {
  let drivers: [Driver, Driver]
  beforeAll(async () => {
    drivers = await open()
  })
  const stores = () => drivers.map(driver => new KvStore(driver)) as [KvStore, KvStore]
  const managers = () => stores().map(managerOf) as [ReturnType<typeof managerOf>, ReturnType<typeof managerOf>]

  describe('keeps the contract:', () => {
    testStore((name, test) => without?.test(name) || it(name, test), stores, undefined, {
      ...options,
      async corrupt(_, key) {
        await drivers[0].commit([{ key: `s/${key}`, text: '{"broken', until: Date.now() + MINUTE }])
      },
    })
  })

  it(`takes ${logins} logins of one user at once, on two nodes`, async () => {
    const [one, other] = managers()
    const user = { id: newUserId(), name: 'ada' }
    await Promise.all(times(logins).map(at => (at % 2 ? one : other).create({ user })))
    expect((await one.list(user.id)).length).toBe(logins)
    expect(await other.invalidateUser(user.id)).toBe(logins)
    expect(await one.list(user.id)).toEqual([])
  })
}

/** The same over two connections to a server that starts for it. */
export function kvScenesOn(start: () => Promise<KeyValues>, without?: RegExp) {
  let database: KeyValues
  afterAll(() => database?.stop())
  kvScenes(
    async () => {
      database = await start()
      return [await database.connect(), await database.connect()]
    },
    // Once: that every order ends well is asked in memory.
    { runs: 1, rounds: 1, logins: 200, ...(without && { without }) },
  )
}

/** A driver that tells of each commit before it is made. */
export const watched = (driver: Driver, tell: (items: Item[]) => unknown): Driver => ({
  ...driver,
  async commit(items) {
    await tell(items)
    return driver.commit(items)
  },
})
