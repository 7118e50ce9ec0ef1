// examples/kv-store.mjs in memory. Over databases: kv/*.engines.test.ts.
import { SessionManager } from 'coatcheck'
import { newUserId, testStore } from 'coatcheck/custom-store/testing'
import { describe, expect, it, vi } from 'vitest'
import { inPieces, memoryDriver } from '../../examples/kv-drivers.mjs'
import { type Driver, type Item, KvStore } from '../../examples/kv-store.mjs'
import { kvScenes, managerOf, watched } from './kv/scenes.ts'

const MINUTE = 60_000
const ada = () => ({ id: newUserId(), name: 'ada' })
const times = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('a store over a database that commits several entries at once', () => {
  kvScenes(() => {
    const driver = watched(memoryDriver(), items => expect(items.length).toBeLessThanOrEqual(100))
    return [driver, driver]
  })
})

/** A database with limits: 200 bytes in an entry of a commit, ten versions to check, 100 entries. */
function narrowDriver(): Driver {
  const inner = memoryDriver()
  const narrow: Driver = {
    ...inner,
    checks: 10,
    commit(items) {
      for (const { key, text } of items) {
        expect((text ?? '').length).toBeLessThanOrEqual(key.startsWith('p/') ? 1600 : 200)
        // Half a character is lost where text is kept as UTF-8.
        expect((text ?? '').isWellFormed()).toBe(true)
      }
      expect(items.length).toBeLessThanOrEqual(100)
      expect(items.filter(({ version }) => version !== undefined).length).toBeLessThanOrEqual(10)
      return inner.commit(items)
    },
  }
  return inPieces(narrow, 200)
}

describe('the same where the database has narrow limits', () => {
  testStore(
    // What is many, not long, is asked above.
    (name, test) => /1,200 sessions|readers in one turn/.test(name) || it(name, test),
    () => {
      const driver = narrowDriver()
      return [new KvStore(driver), new KvStore(driver)]
    },
    undefined,
    { runs: 5, rounds: 3 },
  )
  it.each(['', 'x'])('keeps long text whole, wherever it is cut: %o before', async start => {
    const driver = narrowDriver()
    const text = `${start}${'😀'.repeat(1000)}`
    await driver.commit([{ key: 's/1', text, until: 0 }])
    expect((await driver.get(['s/1']))[0]?.text).toBe(text)
  })
})

it('what was read while a commit was half done is read again: no session is lost, and none is called gone', async () => {
  const driver = memoryDriver()
  const other = managerOf(new KvStore(driver))
  let hidden = ''
  let meanwhile: (() => Promise<unknown>) | null = null
  const halfway: Driver = {
    ...driver,
    async get(keys) {
      const before = await driver.get(keys)
      const run = meanwhile
      meanwhile = null
      await run?.()
      // What comes first in a list is as it was before, the rest as it is after.
      const found = run === null ? before : [...before.slice(0, 1), ...(await driver.get(keys)).slice(1)]
      const at = keys.indexOf(hidden)
      if (at >= 0) {
        found[at] = { text: null, version: null }
        hidden = ''
      }
      return found
    },
  }
  const store = new KvStore(halfway)
  const user = ada()
  const { key, secret } = await other.create({ user })
  hidden = `s/${key}`
  expect((await managerOf(store).list(user.id)).map(each => each.key)).toEqual([key])
  expect(await other.get(secret)).not.toBeNull()

  const now = Date.now()
  const old = (await store.listUser(user.id, 'session', { now }))[0]!
  const next = { ...old, key: 'n'.repeat(46), version: 1, writeId: 'next-one' }
  meanwhile = () => new KvStore(driver).replace(old.key, old.version, next, {}, { now })
  expect(await store.replace(old.key, old.version, next, {}, { now })).toBe('created')
})

it('an outage, a full table and a commit that is too large are errors, and log nobody out', async () => {
  const driver = memoryDriver()
  let failure: Error | null = null
  const check = () => {
    if (failure !== null) throw failure
  }
  const failing: Driver = {
    ...driver,
    async get(keys) {
      check()
      return driver.get(keys)
    },
    commit: watched(driver, items => items.length > 1 && check()).commit,
  }
  const sessions = managerOf(new KvStore(failing))
  const user = ada()
  const session = await sessions.create({ user })
  failure = Object.assign(new Error('slow down'), { name: 'ProvisionedThroughputExceededException' })
  const lost = { code: 'ERR_SESSION_STORE', status: 503, outcome: 'not-applied', cause: failure }
  for (const call of [
    () => sessions.get(session.secret),
    () => sessions.list(user.id),
    () => sessions.create({ user }),
    () => sessions.update(session, { n: 1 }),
  ])
    await expect(call()).rejects.toMatchObject(lost)
  // Some of a user's sessions may have ended before: the caller repeats it until it resolves.
  await expect(sessions.invalidateUser(user.id)).rejects.toMatchObject({ status: 503, outcome: 'unknown' })
  failure = null
  expect((await sessions.get(session.secret))?.data).toEqual({ n: 0 })
})

it('nothing may be removed by the database before a node whose clock is 4 minutes behind sees its end', async () => {
  const written: Item[] = []
  const driver = watched(memoryDriver(), items => written.push(...items.filter(({ text }) => text)))
  const behind = Date.now() - 4 * MINUTE
  const sessions = new SessionManager({ store: new KvStore(driver), now: () => behind, sweepInterval: false })
  const session = await sessions.create({ user: { id: 1, name: 'ada' } })
  await sessions.update(session, { n: 1 })
  const renewed = await sessions.regenerate(session, { grace: '1m' })
  await sessions.invalidateUser(1, { except: renewed!, minPasswordVersion: 1 })
  expect(written.length).toBeGreaterThan(5)
  for (const { key, text, until } of written) {
    const { expiresAt, keptUntil, min, until: usersUntil } = JSON.parse(text!)
    const end = expiresAt ?? keptUntil ?? Math.max(min.until, usersUntil)
    expect([key, until! - end]).toEqual([key, 5 * MINUTE])
  }
})

it('the list of a user loses what has ended, and does not grow by what nobody ended', async () => {
  const driver = memoryDriver()
  let clock = Date.now()
  const sessions = new SessionManager({
    store: new KvStore(driver),
    userIds: 'string',
    sweepInterval: false,
    absoluteTimeout: '1h',
    now: () => clock,
  })
  const user = ada()
  const listed = async () => Object.keys(JSON.parse((await driver.get([`u/${user.id}`]))[0]!.text!).keys)
  for (const _ of times(50)) {
    clock += 5 * MINUTE
    await sessions.create({ user })
  }
  expect((await listed()).length).toBe(13)
  // What the database has removed by its end.
  for (const key of (await listed()).slice(1)) await driver.commit([{ key: `s/${key}`, text: null }])
  for (const _ of times(2)) await sessions.list(user.id)
  expect((await listed()).length).toBe(1)
})

it('a call that hangs holds up no other login of its user for longer than its own time', async () => {
  // A real timer may ring a fraction of a millisecond before its time: the next call would still wait.
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  const driver = memoryDriver()
  let hangs = true
  const store = new KvStore({
    ...driver,
    get: keys => (hangs ? new Promise(() => {}) : driver.get(keys)),
  })
  const user = ada()
  const hasty = new SessionManager({ store, userIds: 'string', storeTimeout: '50ms', sweepInterval: false })
  const refused = expect(hasty.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
  await vi.advanceTimersByTimeAsync(50)
  await refused
  hangs = false
  const patient = managerOf(store)
  expect(await patient.get((await patient.create({ user })).secret)).not.toBeNull()
})

it('calls that wait for another one share a commit, and are told of its failure, each by an error of its own', async () => {
  const driver = memoryDriver()
  const commit = vi.fn(() => Promise.reject(new Error('away')))
  const store = new KvStore({ ...driver, commit })
  const user = ada()
  const failures = await Promise.all(
    times(5).map(() =>
      managerOf(store)
        .create({ user })
        .catch(error => error),
    ),
  )
  expect(commit).toHaveBeenCalledTimes(2)
  expect(new Set(failures).size).toBe(5)
  for (const error of failures) expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'unknown' })
})
