import assert from 'node:assert/strict'
import type { SessionRecord } from '../contract/store.ts'
import { type Case, HOUR, type Kit, MINUTE, rules } from './kit.ts'

// Every race ends in a state that one of the orders of its contestants leads to. Cases assert that no other state is met.

const all = <T>(count: number, start: (number: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, number) => start(number)))

const replace = (kit: Kit, old: SessionRecord, next: SessionRecord, leavesForward = true) => {
  const options = leavesForward ? { forward: { salt: '', until: kit.now + MINUTE } } : {}
  return kit.store.replace(old.key, old.version, next, options, kit.call)
}

const update = (kit: Kit, record: SessionRecord) => kit.store.update(record.key, record.version, kit.change(), kit.call)
const touch = (kit: Kit, record: SessionRecord) => kit.store.touch(record.key, kit.now, kit.now + HOUR, kit.call)

/** Replaces a session again and again, as renewals do, until it is gone; answers every key that it ever had. */
async function lineage(kit: Kit, first: SessionRecord, length: number): Promise<SessionRecord[]> {
  const records = [first]
  for (let old = first; records.length < length; ) {
    const next = kit.successor(old)
    records.push(next)
    if ((await replace(kit, old, next)) !== 'created') break
    old = next
  }
  return records
}

/** The index of a user misses no live session: the list is complete, and an ending ends all. */
async function indexIsWhole(kit: Kit, userId: string, records: readonly SessionRecord[]): Promise<void> {
  const live: string[] = []
  for (const { key } of records) if (await kit.isLive(key)) live.push(key)
  assert.deepEqual(await kit.keys(userId), live.sort())
  assert.equal(await kit.deleteUser(userId), live.length)
  await kit.noneLives(records)
}

const stays: readonly Case[] = rules({
  'does not let a late update or touch revive a session that is being ended': kit =>
    kit.race(async together => {
      const record = await kit.put({ userId: kit.user() })
      const [deleted] = await together<[boolean, ...unknown[]]>(
        () => kit.store.delete(record.key, kit.call),
        () => update(kit, record),
        () => touch(kit, record),
        () => touch(kit, record),
      )
      assert.equal(deleted, true)
      await kit.isGone(record)
    }),
  'does not let a late update or touch revive a session while its user is logged out everywhere': kit =>
    kit.race(async together => {
      const userId = kit.user()
      const records = await all(3, () => kit.put({ userId }))
      const [ended] = await together<[number, ...unknown[]]>(
        () => kit.deleteUser(userId),
        ...records.flatMap(record => [() => update(kit, record), () => touch(kit, record)]),
      )
      assert.equal(ended, 3)
      await kit.isGone(...records)
    }),
  'does not let a late update or touch revive a session that is being replaced': kit =>
    kit.race(async together => {
      const record = await kit.put({ userId: kit.user() })
      const next = kit.successor(record)
      const [replaced, updated] = await together<[string, string, unknown]>(
        () => replace(kit, record, next, false),
        () => update(kit, record),
        () => touch(kit, record),
      )
      if (replaced === 'created') {
        assert.equal(updated, 'gone', 'an update was acknowledged and lost')
        await kit.isGone(record)
        await kit.isExactly(next)
      } else {
        assert.deepEqual([replaced, updated], ['conflict', 'updated'])
        await kit.isGone(next)
        assert.equal((await kit.find(record.key))?.version, 2)
      }
    }),
  'does not lose an acknowledged update while an anonymous session becomes a login': kit =>
    kit.race(async together => {
      const record = await kit.put()
      const next = kit.successor(record, { userId: kit.user(), userName: 'Ada' })
      const [replaced, updated] = await together<[string, string]>(
        () => replace(kit, record, next, false),
        () => update(kit, record),
      )
      const created = replaced === 'created'
      if (created) await kit.isExactly(next)
      else await kit.isGone(next)
      assert.equal(await kit.isLive(record.key), !created)
      if (created) assert.equal(updated, 'gone', 'an update was acknowledged and lost')
      else assert.deepEqual([replaced, updated], ['conflict', 'updated'])
    }),
  'ends the session and its successor when a logout and a rotation run at once': kit =>
    kit.race(async together => {
      const record = await kit.put({ userId: kit.user() })
      const next = kit.successor(record)
      const [deleted] = await together<[boolean, unknown]>(
        () => kit.store.delete(record.key, kit.call),
        () => replace(kit, record, next),
      )
      assert.equal(deleted, true)
      await kit.isGone(next)
      await kit.isGone(record)
    }),
  'ends the last successor when a logout and a chain of rotations run at once': kit =>
    kit.race(async together => {
      const record = await kit.put({ userId: kit.user() })
      const [, records] = await together<[boolean, SessionRecord[]]>(
        () => kit.store.delete(record.key, kit.call),
        () => lineage(kit, record, 5),
      )
      // A renewal that ran between two steps of the logout is caught by the logout, whatever it answers.
      await kit.noneLives(records)
      assert.deepEqual(await kit.keys(record.userId!), [])
    }),
  'either ends the anonymous session or makes it a login when both are asked for at once': kit =>
    kit.race(async together => {
      const record = await kit.put()
      const next = kit.successor(record, { userId: kit.user(), userName: 'Ada' })
      const [deleted, replaced] = await together<[boolean, string]>(
        () => kit.store.delete(record.key, kit.call),
        () => replace(kit, record, next, false),
      )
      assert.equal(await kit.isLive(record.key), false)
      assert.equal(replaced, deleted ? 'gone' : 'created')
      assert.equal(await kit.isLive(next.key), !deleted)
    }),
  'says once that a session was ended when it is ended ten times at once': kit =>
    kit.race(async () => {
      const record = await kit.put({ userId: kit.user() })
      const answers = await all(10, () => kit.store.delete(record.key, kit.call))
      assert.equal(answers.filter(Boolean).length, 1)
      await kit.isGone(record)
    }),
})

const identities: readonly Case[] = rules({
  'gives a session one successor when it is replaced 20 times at once': kit =>
    kit.race(async (_, number) => {
      const record = await kit.put({ userId: kit.user() })
      const candidates = Array.from({ length: 20 }, () => kit.successor(record))
      const outcomes = await all(20, index => replace(kit, record, candidates[index]!, number % 2 === 0))
      const created = candidates.filter((_, index) => outcomes[index] === 'created')
      assert.equal(created.length, 1)
      assert.equal(outcomes.filter(outcome => outcome === 'gone').length, 19)
      await kit.isExactly(created[0]!)
      assert.deepEqual(await kit.keys(record.userId!), [created[0]!.key])
      await kit.isGone(record)
    }),
  'makes an anonymous session one login when 20 users log in from it at once': kit =>
    kit.race(async () => {
      const record = await kit.put()
      const candidates = Array.from({ length: 20 }, () =>
        kit.successor(record, { userId: kit.user(), userName: 'Ada' }),
      )
      // Across shards a call may reject if it cannot say more; then its new session must not live.
      const outcomes = await Promise.allSettled(candidates.map(next => replace(kit, record, next, false)))
      const live: string[] = []
      for (const { key } of candidates) if (await kit.isLive(key)) live.push(key)
      const created = candidates.filter((_, index) => {
        const outcome = outcomes[index]!
        return outcome.status === 'fulfilled' && outcome.value === 'created'
      })
      assert.deepEqual(
        live,
        created.map(({ key }) => key),
      )
      assert.equal(live.length, 1)
      assert.equal(await kit.isLive(record.key), false)
    }),
  'makes one session of ten parallel creates with one key': kit =>
    kit.race(async () => {
      const key = kit.key()
      const candidates = Array.from({ length: 10 }, (_, index) => kit.record({ key, data: `{"n":${index}}` }))
      const outcomes = await all(10, index => kit.create(candidates[index]!))
      const created = candidates.filter((_, index) => outcomes[index] === 'created')
      assert.equal(created.length, 1)
      assert.equal(outcomes.filter(outcome => outcome === 'collision').length, 9)
      await kit.isExactly(created[0]!)
    }),
})

const everywhere: readonly Case[] = [
  ...rules({
    'lets no login with the old password survive a logout everywhere at the same time': kit =>
      kit.race(async together => {
        const userId = kit.user()
        const stale = Array.from({ length: 6 }, () => kit.record({ userId, passwordVersion: 1 }))
        const anonymous = await all(3, () => kit.put())
        const logins = anonymous.map(old => kit.successor(old, { userId, userName: 'Ada', passwordVersion: 1 }))
        const fresh = kit.record({ userId, passwordVersion: 2 })
        await together<unknown[]>(
          ...stale.slice(0, 3).map(record => () => kit.create(record)),
          () => kit.deleteUser(userId, { minPasswordVersion: 2 }),
          ...stale.slice(3).map(record => () => kit.create(record)),
          ...logins.map((next, index) => () => replace(kit, anonymous[index]!, next, false)),
          () => kit.create(fresh),
        )
        await kit.isGone(...stale, ...logins)
        await indexIsWhole(kit, userId, [fresh])
      }),
    'lets no login escape the index of its user while the user is logged out everywhere': kit =>
      kit.race(async together => {
        const userId = kit.user()
        const before = await all(3, () => kit.put({ userId }))
        const during = Array.from({ length: 6 }, () => kit.record({ userId }))
        await together<unknown[]>(
          ...during.slice(0, 3).map(record => () => kit.create(record)),
          () => kit.deleteUser(userId),
          ...during.slice(3).map(record => () => kit.create(record)),
        )
        await kit.isGone(...before)
        await indexIsWhole(kit, userId, during)
      }),
  }),
  ...[undefined, 2].flatMap(minPasswordVersion =>
    rules({
      [`lets no successor of a session survive a logout everywhere ${minPasswordVersion === undefined ? 'without' : 'with'} a password version`]:
        kit =>
          kit.race(async together => {
            const userId = kit.user()
            const before = await all(4, () => kit.put({ userId, passwordVersion: 1 }))
            const [one, two, three, four] = before.map(record => () => lineage(kit, record, 6))
            const results = await together<
              [SessionRecord[], SessionRecord[], number, SessionRecord[], SessionRecord[]]
            >(
              one!,
              two!,
              () => kit.deleteUser(userId, minPasswordVersion === undefined ? {} : { minPasswordVersion }),
              three!,
              four!,
            )
            const records = results.flatMap(result => (typeof result === 'number' ? [] : result))
            await kit.noneLives(records)
            assert.deepEqual(await kit.keys(userId), [])
          }),
    }),
  ),
  ...[undefined, 2].flatMap(minPasswordVersion =>
    rules({
      [`spares the excepted session while it is being replaced, in a logout everywhere ${minPasswordVersion === undefined ? 'without' : 'with'} a password version`]:
        kit =>
          kit.race(async (together, number) => {
            const userId = kit.user()
            const [spared, other] = await all(2, () => kit.put({ userId, passwordVersion: 2 }))
            const [, ours] = await together<[number, SessionRecord[], SessionRecord[]]>(
              () =>
                kit.deleteUser(userId, {
                  exceptKey: spared!.key,
                  ...(minPasswordVersion === undefined ? {} : { minPasswordVersion }),
                }),
              () => lineage(kit, spared!, 2 + (number % 5)),
              () => lineage(kit, other!, 4),
            )
            assert.equal(ours.length, 2 + (number % 5), 'the excepted session was ended')
            await kit.isExactly(ours.at(-1)!)
            assert.deepEqual(await kit.keys(userId), [ours.at(-1)!.key])
          }),
    }),
  ),
  ...rules({
    async 'ends 1,200 sessions of one user, and what replaces them meanwhile'(kit) {
      const userId = kit.user()
      const records: SessionRecord[] = []
      while (records.length < 1200) records.push(...(await all(100, () => kit.put({ userId }))))
      assert.equal((await kit.keys(userId)).length, 1200)
      const [, ...lineages] = await Promise.all([
        kit.deleteUser(userId),
        ...records.filter((_, index) => index % 100 === 99).map(record => lineage(kit, record, 8)),
      ])
      await kit.noneLives(lineages.flat())
      assert.deepEqual(await kit.keys(userId), [])
      assert.equal(await kit.deleteUser(userId), 0)
    },
    'lets no session that a series starts survive a logout everywhere at the same time': kit =>
      kit.race(async together => {
        const userId = kit.user()
        const series = await kit.put({ userId, kind: 'remember' })
        const started = Array.from({ length: 6 }, () => kit.record({ userId, parent: series.key }))
        await together<unknown[]>(
          ...started.slice(0, 3).map(record => () => kit.create(record)),
          () => kit.deleteUser(userId),
          ...started.slice(3).map(record => () => kit.create(record)),
        )
        await kit.isGone(series, ...started)
      }),
  }),
  ...rules({
    'lets no session begin unseen with a series that is being ended': kit =>
      kit.race(async together => {
        const userId = kit.user()
        const series = await kit.put({ userId, kind: 'remember' })
        const started = Array.from({ length: 8 }, () => kit.record({ userId, parent: series.key }))
        const end = async (): Promise<string[]> => {
          assert.equal(await kit.store.delete(series.key, kit.call), true)
          // The caller of an end ends the sessions of this list, and nothing later.
          return kit.keys(userId)
        }
        const [first, seen, ...rest] = await together<[string, string[], ...string[]]>(
          () => kit.create(started[0]!),
          end,
          ...started.slice(1).map(record => () => kit.create(record)),
        )
        for (const [index, outcome] of [first, ...rest].entries())
          assert.equal(outcome, seen.includes(started[index]!.key) ? 'created' : 'orphan')
        assert.deepEqual(await kit.keys(userId), seen)
      }),
    'ends each session once when a user is logged out everywhere five times at once': kit =>
      kit.race(async () => {
        const userId = kit.user()
        const records = await all(5, () => kit.put({ userId }))
        const ended = await all(5, number =>
          kit.deleteUser(userId, number % 2 === 0 ? {} : { minPasswordVersion: number }),
        )
        const sum = ended.reduce((sum, count) => sum + count, 0)
        assert.equal(sum, 5)
        await kit.isGone(...records)
      }),
    'keeps the highest of the minimum password versions that are raised at once': kit =>
      kit.race(async () => {
        const userId = kit.user()
        await all(6, number => kit.deleteUser(userId, { minPasswordVersion: 1 + ((number * 5) % 6) }))
        assert.equal(await kit.create(kit.record({ userId, passwordVersion: 5 })), 'stale-login')
        await kit.put({ userId, passwordVersion: 6 })
      }),
  }),
]

const counting: readonly Case[] = rules({
  async 'counts to 100 in 100 parallel increments'(kit) {
    const record = await kit.put({ data: '0' })
    await all(100, async () => {
      for (let conflicts = 0; ; conflicts += 1) {
        const begun = performance.now()
        const found = await kit.find(record.key)
        assert.ok(found !== null)
        // One for each write of another. Twice as many for a store that says so of writes that failed as well.
        assert.ok(conflicts <= 200, 'the conflicts do not end')
        const change = kit.change({ data: String(Number(found.data) + 1) })
        if ((await kit.store.update(record.key, found.version, change, kit.call)) === 'updated') return
        // With a store that takes longer, writers that came back sooner would all meet again, and one of them win.
        const took = performance.now() - begun
        await new Promise(resolve => setTimeout(resolve, Math.random() * (20 + 4 * took)))
      }
    })
    const found = await kit.find(record.key)
    assert.deepEqual([found?.data, found?.version], ['100', 101])
  },
  'lets one of two updates of one version win': kit =>
    kit.race(async together => {
      const record = await kit.put()
      const outcomes = await together<string[]>(
        () => update(kit, record),
        () => update(kit, record),
        () => update(kit, record),
      )
      assert.deepEqual(outcomes.sort(), ['conflict', 'conflict', 'updated'])
      assert.equal((await kit.find(record.key))?.version, 2)
    }),
  'counts a write once that arrives five times at once with one write ID': kit =>
    kit.race(async () => {
      const userId = kit.user()
      const record = kit.record({ userId })
      for (const outcome of await all(5, () => kit.create(record))) assert.equal(outcome, 'created')
      assert.deepEqual(await kit.keys(userId), [record.key])
      const change = kit.change()
      for (const outcome of await all(5, () => kit.store.update(record.key, 1, change, kit.call)))
        assert.equal(outcome, 'updated')
      assert.equal((await kit.find(record.key))?.version, 2)
      const next = kit.successor(record)
      const renewed = { ...record, version: 2 }
      for (const outcome of await all(5, () => replace(kit, renewed, next))) assert.equal(outcome, 'created')
      assert.deepEqual(await kit.keys(userId), [next.key])
      await kit.isExactly(next)
    }),
})

export const races: readonly Case[] = [...stays, ...identities, ...everywhere, ...counting]
