// The way over: browsers come with sessions of the store that the service had before. frameworks.ts asks it of each framework.
import { SessionError, type SessionEvent, SessionManager, SessionStoreError } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { OldConnectStore } from '../support/connect/old-store.ts'
import { sidOf, userOf } from './service.ts'

describe('a session of the old store', () => {
  const SID = sidOf('an old session')
  const OLD = { cookie: { originalMaxAge: null }, user: '42' }

  function start(options: object = {}) {
    const barrier = BarrierStore.over(new MemoryStore())
    const old = new OldConnectStore()
    const events: SessionEvent[] = []
    const put = (session: object = OLD) => old.records.set(SID, JSON.stringify(session))
    const node = (more: object = {}) => {
      const onEvent = (event: SessionEvent) => void events.push(event)
      const sessions = new SessionManager({ store: barrier, sweepInterval: false, onEvent, ...options, ...more })
      return { sessions, store: connectStore(sessions, { userOf: userOf as never, oldStore: old }) }
    }
    put()
    return { ...node(), node, barrier, old, events, put }
  }
  const failing = (verb: string) => (asked: string) => {
    if (asked === verb) throw new Error('the old store is down')
  }

  it('moves with the password version that userOf says of its data, and is refused by a later change', async () => {
    const userOf = ({ user, version }: any) => (user ? { id: user, passwordVersion: version } : null)
    for (const [version, isIn] of [
      [3, true],
      [2, false],
      [null, false],
    ] as const) {
      const { sessions, old, put } = start({ getPasswordVersion: () => 3 })
      put({ ...OLD, version })
      const store = connectStore(sessions, { userOf, oldStore: old })
      expect((await store.get(SID)) !== null, String(version)).toBe(isIn)
      expect(old.records.size).toBe(0)
    }
    const { sessions, old, put } = start({ getPasswordVersion: () => 0 })
    put({ ...OLD, version: null })
    expect(await connectStore(sessions, { userOf, oldStore: old }).get(SID)).toMatchObject({ user: '42' })
  })

  it('stays where it is if userOf leaves the password version out, and a logout removes it', async () => {
    const { store, sessions, old } = start({ getPasswordVersion: () => 0 })
    expect(await store.get(SID)).toBeNull()
    expect([old.records.size, await sessions.count()]).toEqual([1, 0])
    await store.destroy(SID)
    expect(old.records.size).toBe(0)
  })

  it('does not count as one whose password was just verified', async () => {
    const { store, sessions } = start()
    expect(await store.get(SID)).toMatchObject({ user: '42' })
    expect(sessions.isFresh(await sessions.get(store.idOf(SID)), '5m')).toBe(false)
  })

  it('lives if the old store answers it, whatever its cookie says: stores that are only touched leave that as it was', async () => {
    for (const originalMaxAge of [60_000, null]) {
      const { store, put } = start()
      put({ ...OLD, cookie: { originalMaxAge, expires: '2020-01-01T00:00:00.000Z' } })
      expect(await store.get(SID)).toMatchObject({ user: '42' })
      expect(await store.get(SID)).toMatchObject({ user: '42', cookie: { originalMaxAge } })
    }
  })

  it('that is in use outlives the end that its cookie told of when it moved', async () => {
    const { store, put } = start()
    vi.useFakeTimers({ toFake: ['Date'] })
    put({ ...OLD, cookie: { originalMaxAge: 600_000, expires: new Date(Date.now() + 600_000) } })
    for (let minutes = 0; minutes < 30; minutes += 5) {
      expect(await store.get(SID), `after ${minutes} minutes`).toMatchObject({ user: '42' })
      vi.setSystemTime(Date.now() + 300_000)
    }
  })

  it('is absent if a store of files has no such file', async () => {
    const { store, old } = start()
    old.before = () => Promise.reject(Object.assign(new Error('no such file'), { code: 'ENOENT' }))
    expect(await store.get(SID)).toBeNull()
    await store.destroy(SID)
  })

  it('is an error with status 503 while the old store fails, and the next request finds it', async () => {
    const { store, old, events } = start()
    old.before = failing('get')
    const error = await store.get(SID).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ status: 503, cause: { message: 'the old store is down' } })
    expect(events).toMatchObject([{ type: 'store-error', error }])
    old.before = () => {}
    expect(await store.get(SID)).toMatchObject({ user: '42' })
  })

  it('is an error if the old store does not answer within storeTimeout', async () => {
    const { store, old } = start({ storeTimeout: '5s' })
    old.before = () => new Promise(() => {})
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const asked = store.get(SID).catch(String)
    await vi.advanceTimersByTimeAsync(5000)
    expect(await asked).toContain('read: the store of the old sessions did not answer within storeTimeout')
    old.before = () => {}
    expect(await store.get(SID)).toMatchObject({ user: '42' })
  })

  it('moves though the old store cannot remove its record, and a logout ends it for good', async () => {
    const { store, node, old, events } = start()
    old.before = failing('destroy')
    expect(await store.get(SID)).toMatchObject({ user: '42' })
    expect(events.map(({ type }) => type)).toEqual(['created', 'store-error'])
    await expect(store.destroy(SID), 'the caller learns of the record that is left').rejects.toThrow(SessionStoreError)
    expect(old.records.size).toBe(1)
    for (const { store: each } of [{ store }, node()]) expect(await each.get(SID)).toBeNull()
    old.before = () => {}
    await store.destroy(SID)
    expect(old.records.size).toBe(0)
  })

  it('that ends leaves a note, which no number and no list tells of and a stranger none', async () => {
    const { store, sessions, barrier } = start()
    await store.destroy(sidOf('no session'))
    expect((await barrier.scan!(null, 10, { now: 0 })).records).toEqual([])
    await store.destroy(SID)
    const { records } = await barrier.scan!(null, 10, { now: 0 })
    expect(records).toMatchObject([{ kind: 'remember', userId: null, data: '' }])
    const { expiresAt, createdAt } = records[0]!
    expect(expiresAt - createdAt, 'the absolute time, and a day').toBe(36 * 3_600_000)
    expect([await sessions.count(), await store.length(), await store.all()]).toEqual([0, 0, []])
  })

  it('that was ended at an old node while it moved stays ended, whatever an old node saves late', async () => {
    const { store, old, put } = start()
    let looks = 0
    old.before = verb => {
      if (verb === 'get') looks += 1
      if (looks === 2) old.records.clear()
    }
    expect([await store.get(SID), looks]).toEqual([null, 2])
    put()
    expect(await store.get(SID)).toBeNull()
  })

  it('stays ended if our store refuses the note, and an event says so', async () => {
    const { store, barrier, events } = start()
    await store.get(SID)
    barrier.next('create', faults.rejects)
    await store.destroy(SID)
    expect(events.slice(1).map(event => (event.type === 'store-error' ? event.error.message : event.type))).toEqual([
      'destroyed',
      'create: the store failed',
      'create: a session has ended, and its note was refused: a late save in the old store may bring it back',
    ])
    expect(await store.get(SID)).toBeNull()
  })

  it('stays ended where the answer to the second of two logouts is lost, which has ended the note of the first', async () => {
    const { store, node, barrier, put } = start()
    await store.get(SID)
    // The second one has looked when the first one ends the session and leaves its note.
    barrier.next('delete', async proceed => {
      await store.destroy(SID)
      await proceed()
      throw new Error('the answer is lost')
    })
    await expect(node().store.destroy(SID)).rejects.toMatchObject({ outcome: 'unknown' })
    put()
    expect(await node().store.get(SID)).toBeNull()
  })

  it('is not set again by a request of another node that comes late', async () => {
    const { store, node } = start()
    const late = node()
    const loaded = await late.store.get(SID)
    await store.destroy(SID)
    await late.store.set(SID, Object.assign(loaded, { a: 1 }))
    await late.store.touch(SID, loaded)
    await late.store.set(SID, { ...OLD, b: 1 })
    expect(await store.get(SID)).toBeNull()
  })

  it('whose cookie is set to expire has ended, and no late save brings it back', async () => {
    const { store, put } = start()
    const loaded = await store.get(SID)
    await store.set(SID, Object.assign(loaded, { cookie: { expires: '2020-01-01T00:00:00.000Z' } }))
    put()
    expect(await store.get(SID)).toBeNull()
  })

  it('is no login: no limit refuses it, and it ends no other session', async () => {
    for (const onLimit of ['refuse', 'end-oldest'] as const) {
      const { store, sessions } = start({ limit: { max: 1, onLimit } })
      await sessions.create({ user: { id: 42n, name: '' } })
      expect(await store.get(SID)).toMatchObject({ user: '42' })
      expect(await sessions.list(42n)).toHaveLength(2)
    }
  })

  it('of a user whose password was changed since has ended', async () => {
    const { store, sessions, barrier, old, put } = start()
    await sessions.invalidateUser(42n, { minPasswordVersion: 1 })
    expect(await store.get(SID)).toBeNull()
    expect(old.records.size).toBe(0)
    const { records } = await barrier.scan!(null, 10, { now: 0 })
    expect(records, 'a note: the minimum is forgotten one day').toMatchObject([{ kind: 'remember', userId: null }])
    put()
    expect(await store.get(SID)).toBeNull()
  })

  it('needs a store with both methods', () => {
    const { sessions } = start()
    expect(() => connectStore(sessions, { oldStore: {} as never })).toThrow(
      'oldStore: expected the store that the old service has, with get(id) and destroy(id)',
    )
  })

  it('is one with data that fits: the error names the key, the record stays, and a logout ends it', async () => {
    const { store, old, put } = start()
    put({ ...OLD, big: 'x'.repeat(20_000) })
    await expect(store.get(SID)).rejects.toThrow(SessionError)
    expect(old.records.size).toBe(1)
    await store.destroy(SID)
    put()
    expect(await store.get(SID), 'also after a late save of an old node').toBeNull()
  })
})
