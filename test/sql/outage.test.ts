// A server that dies, a network that loses answers or stalls, pools and locks that others hold: each call ends by its deadline
// with an error that says whether something may have been written, nothing runs late, and nothing is left behind.
import type { Store } from 'coatcheck'
import { expect, it, vi } from 'vitest'
import { within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { until } from '../support/services/process.ts'
import { onClients } from './proxied.ts'
import { call, change, everybody, isLive, NOW, newKey, record } from './records.ts'
import { LATE, WHENEVER } from './writes.ts'

/** A call that is to be given up. */
const short = (ms = 300) => ({ now: NOW, deadline: within(ms) })
const logOut = WHENEVER['logout everywhere']!

let users = 7000
/** Two sessions of a new user, of which the first is stored. */
async function begun(store: Store) {
  const userId = `${++users}`
  const [one, other] = [record({ userId }), record({ userId })]
  await store.create(one, call())
  return { one, other, userId }
}

onClients('an outage seen through', (get, name) => {
  it('is an error by the deadline while the server is dead, and is over by itself', async () => {
    const { open, server } = get()
    const { store } = open({ direct: true })
    const { one, other } = await begun(store)
    await server.kill()
    const calls = [...Object.values(LATE), ...Object.values(WHENEVER)].map(
      write => () => write(store, one, other, short()),
    )
    calls.push(
      async () => store.read(one.key, short()),
      () => store.listUser('42', 'session', short()),
      () => store.sweep!(10, short()),
    )
    // The processes of PostgreSQL's connections outlive it by a moment.
    await until('the end of the last connection', () => Promise.all(calls.map(each => failure(each()))))
    await server.restart()
    await until('an answer', async () => expect(await isLive(store, one.key)).toBe(true))
  })

  it('says that an update may have been applied when its answer is lost, and counts its repetition once', async () => {
    const { open, proxy } = get()
    const { store } = open()
    const { one } = await begun(store)
    const edit = change()
    const lost = proxy.loseAnswerTo(one.key)
    expect(await failure(store.update(one.key, 1, edit, call()))).toMatchObject({ outcome: 'unknown' })
    await lost
    await until('the same update', async () => expect(await store.update(one.key, 1, edit, short())).toBe('updated'))
    expect(await store.read(one.key, call())).toMatchObject({ version: 2 })
  })

  it('answers a read whose connection is closed on the way, by another one, and never a write', async () => {
    const { open, proxy } = get()
    const { store } = open()
    const { one, userId } = await begun(store)
    const reads: [sent: string, read: () => unknown][] = [
      [one.key, () => store.read(one.key, call())],
      [userId, async () => (await store.listUser(userId, 'session', call()))[0]],
      [one.key, async () => (await Promise.all([one.key, newKey()].map(key => store.read(key, call()))))[0]],
    ]
    for (const [sent, read] of reads) {
      const lost = proxy.loseAnswerTo(sent)
      expect(await read()).toEqual(one)
      await lost
    }
    const lost = proxy.loseAnswerTo(one.key)
    await failure(store.touch(one.key, NOW + 1, NOW + 9e6, call()))
    await lost
  })

  it('lets a logout everywhere be repeated whose connection is cut between commit and answer', async () => {
    const { open, proxy, inTransaction, commit } = get()
    const { store } = open()
    const { one, other } = await begun(store)
    const lost = proxy.loseAnswerTo(commit)
    expect(await failure(logOut(store, one, other, call()))).toMatchObject({ outcome: 'unknown' })
    await lost
    await until('the same logout', () => logOut(store, one, other, short()))
    expect(await isLive(store, one.key)).toBe(false)
    expect(await store.create(other, call())).toBe('stale-login')
    await until('no open transaction', async () => expect(await inTransaction()).toBe(0))
  })

  it('runs nothing late that waited for a connection until its deadline', async () => {
    const { store, take } = get().open({ max: 1 })
    const { one, other } = await begun(store)
    const release = await take()
    await failure(store.update(one.key, 1, change(), short()))
    expect(await failure(logOut(store, one, other, short()))).toMatchObject({ outcome: 'not-applied' })
    // In the queue of the pool it comes after those that were given up.
    const read = store.read(one.key, call())
    release()
    expect(await read).toEqual(one)
    expect(await store.read(one.key, call())).toEqual(one)
  })

  it('runs nothing late that waited for a lock until its deadline, and leaves nothing at the server', async () => {
    const { open, locks, inTransaction } = get()
    const { store } = open({ max: 2 })
    const { one, other } = await begun(store)
    const release = await locks.hold(`SELECT * FROM coatcheck_sessions WHERE id = '${one.key}' FOR UPDATE`)
    const writes = [LATE.update!, ...Object.values(WHENEVER)]
    await Promise.all(writes.map(write => failure(write(store, one, other, short()))))
    // What was told to stop has stopped before the lock is free.
    await locks.nothingWaits()
    await release()
    expect(await store.read(one.key, call())).toEqual(one)
    await until('no open transaction', async () => expect(await inTransaction()).toBe(0))
    expect(await store.deleteUser(one.userId!, everybody, call())).toBe(1)
  })

  it('ends no session by a logout everywhere that was given up in a stalled network when the network heals', async () => {
    const { direct, open, proxy } = get()
    const { one, other } = await begun(direct)
    const { store } = open({ max: 1 })
    // As on any connection that has been in use for some time: nothing is left to be prepared.
    const before = await begun(direct)
    await logOut(store, before.one, before.other, call())
    proxy.stall()
    expect(await failure(logOut(store, one, other, short()))).toMatchObject({ status: 503 })
    await proxy.heal()
    expect(await direct.read(one.key, call())).toEqual(one)
    expect(await direct.create(other, call())).toBe('created')
    expect((await store.listUser(one.userId!, 'session', call())).length).toBe(2)
  })

  it('ends no session where the last step of that was given up in a stalled network', async () => {
    const { direct, open, proxy, commit, inTransaction } = get()
    const { one, other } = await begun(direct)
    const { store } = open({ max: 1 })
    await store.touch(newKey(), NOW, NOW, call())
    let isStalled = false
    void proxy.stallAt(commit).then(() => {
      isStalled = true
    })
    // On a busy machine it is given up before its last step.
    for (let time = 400; !isStalled; time *= 2) await failure(logOut(store, one, other, short(time)))
    // The server rolls it back by itself, before it hears of the COMMIT.
    await until('no open transaction', async () => expect(await inTransaction()).toBe(0))
    await proxy.heal()
    expect(await direct.read(one.key, call())).toEqual(one)
  })

  it('never holds more connections than the pool while the table is locked, however long callers go on', async () => {
    const { open, connections, locks, atMost } = get()
    const { store } = open({ max: 5, name: 'crowd' })
    await Promise.all(Array.from({ length: 5 }, () => store.read(newKey(), call())))
    const release = await locks.hold()
    let [most, failed] = [0, 0]
    const goOn = async (number: number) => {
      while (failed < 40) {
        const key = newKey()
        const calls = [
          async () => store.read(key, short(150)),
          () => store.touch(key, NOW, NOW, short(150)),
          () => store.deleteUser('1', { minPasswordVersionUntil: NOW }, short(150)),
        ]
        await failure(calls[number % 3]!())
        failed += 1
        most = Math.max(most, await connections('crowd'))
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, number) => goOn(number)))
    await release()
    expect(most).toBeLessThanOrEqual(atMost)
    await until('an answer', async () => expect(await store.read(newKey(), short(1000))).toBe(null))
    await until('the end of what was left', async () => expect(await connections('crowd')).toBeLessThanOrEqual(5))
  })

  // What follows is decided by the statements and by what all clients share.
  if (name === 'Postgres.js') return

  it.each([-30_000, 30_000])('loses no write when one of the clocks is set by %d ms', async difference => {
    const { store } = get().open({ max: 1 })
    const { one } = await begun(store)
    const real = performance.now.bind(performance)
    // Only the difference between the two clocks counts, so that it does not matter which of them was set.
    vi.spyOn(performance, 'now').mockImplementation(() => real() + difference)
    expect(await store.update(one.key, 1, change(), call())).toBe('updated')
    expect(await store.delete(one.key, call())).toBe(true)
  })

  if (name === 'mysql2') return

  it('hears an answer that came in time while the event loop was blocked', async () => {
    // Without the proxy, which runs in this event loop too: an answer would pass it too late.
    const { direct } = get()
    await direct.read(newKey(), call())
    const answer = direct.read(newKey(), short(1700))
    // So long that the statement is on its way, and nothing has come back.
    await new Promise(resolve => setImmediate(resolve))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1800)
    expect(await answer).toBe(null)
  })
})
