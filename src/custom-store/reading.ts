import assert from 'node:assert/strict'
import type { Corrupt, Forward, SessionRecord, Store } from '../contract/store.ts'
import { readAndWrite } from './caller.ts'
import { ODD_KEYS } from './identities.ts'
import { type Case, forwardEnd, HOUR, isSame, type Kit, MINUTE, rules, rulesWith, same, spoil, turn } from './kit.ts'
import { pick } from './random.ts'
import { ReferenceStore } from './reference.ts'

// Reads that are asked for in one turn of the event loop. A store may send them as one command; each caller gets the answer it
// would have got alone, and a failure of one concerns no other.

type Answer = SessionRecord | Forward | Corrupt | null

/** Time enough for thousands of calls on a slow machine; a call that hangs is ended by the runner. */
const later = () => performance.now() + 100_000

const otherCase = (text: string) =>
  text.replace(/[a-z]/gi, letter => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))

/** Brings keys into every state in which a read can find them, here and in a reference store. */
async function shelf(kit: Kit): Promise<{ keys: readonly string[]; model: ReferenceStore }> {
  const { now } = kit
  const model = new ReferenceStore()
  const keys: string[] = []
  const both = async (call: (store: Store) => Promise<unknown>) => {
    await call(kit.store)
    await call(model)
  }
  const put = async (over: Partial<SessionRecord> = {}) => {
    const record = kit.record({ data: `{"place":${keys.length}}`, ...over })
    await both(store => store.create(record, { now }))
    keys.push(record.key)
    return record
  }
  const replace = async (record: SessionRecord, forward?: { salt: string; until: number }) => {
    const next = kit.successor(record)
    const options = forward === undefined ? {} : { forward }
    await both(store => store.replace(record.key, 1, next, options, { now }))
    keys.push(next.key)
    return next
  }
  for (const userId of [null, kit.user(), kit.user()]) {
    for (const expiresAt of [now + 30 * MINUTE, now + HOUR, now + MINUTE, now]) await put({ userId, expiresAt })
    const updated = await put({ userId })
    const change = kit.change({ expiresAt: now + HOUR })
    await both(store => store.update(updated.key, 1, change, { now }))
    const touched = await put({ userId })
    await both(store => store.touch(touched.key, now + 1, now + HOUR, { now }))
    const ended = await put({ userId })
    await both(store => store.delete(ended.key, { now }))
    await replace(await put({ userId }))
    const rotated = await replace(await put({ userId }), { salt: 'c2FsdA', until: now + MINUTE })
    await replace(rotated, { salt: '', until: now })
    keys.push(kit.key(userId), kit.key(userId))
  }
  await put({ userId: kit.user(), kind: 'remember' })
  const { key } = await put()
  await put({ key: key.slice(0, 3) + otherCase(key.slice(3)) })
  return { keys, model }
}

/** Asks for these keys in one turn, some after microtasks of their own, and compares each answer with the reference. */
async function askTogether(
  kit: Kit,
  model: ReferenceStore,
  asked: readonly { readonly key: string; readonly now: number }[],
  next: () => number,
): Promise<void> {
  const answers = await Promise.all(
    asked.map(async ({ key, now }) => {
      for (let hops = next() % 3; hops > 0; hops--) await null
      return kit.read(key, { now, deadline: later() })
    }),
  )
  for (const [index, { key, now }] of asked.entries()) same(answers[index], await model.read(key, { now }))
}

type Write = (kit: Kit, record: SessionRecord) => Promise<Answer>

/** Every write to a session; each answers the record under its key afterwards. */
const WRITES: readonly Write[] = [
  async (kit, record) => {
    const change = kit.change()
    await kit.store.update(record.key, 1, change, kit.call)
    return { ...record, ...change, version: 2 }
  },
  async (kit, record) => {
    await kit.store.touch(record.key, kit.now + 1, kit.now + HOUR, kit.call)
    return { ...record, seenAt: kit.now + 1, expiresAt: kit.now + HOUR }
  },
  async (kit, record) => {
    await kit.store.delete(record.key, kit.call)
    return null
  },
  async (kit, record) => {
    await kit.store.replace(record.key, 1, kit.successor(record), {}, kit.call)
    return null
  },
  async (kit, record) => {
    const { key: movedTo } = await kit.forward(record, kit.now + MINUTE, 'c2FsdA')
    return { movedTo, salt: 'c2FsdA', until: kit.now + MINUTE }
  },
  async (kit, record) => {
    await kit.deleteUser(record.userId!)
    return null
  },
]

export const reading: readonly Case[] = [
  ...rules({
    async 'brings each of many readers in one turn what stands under its own key'(kit) {
      const { keys, model } = await shelf(kit)
      await askTogether(
        kit,
        model,
        keys.map(key => ({ key, now: kit.now })),
        () => 0,
      )
      await kit.random(kit.rounds, async next => {
        const asked = Array.from({ length: next() % 100 }, () => ({ key: pick(keys, next()), now: kit.now }))
        await askTogether(kit, model, asked, next)
      })
    },
    async 'decides for each of many readers in one turn by its own clock'(kit) {
      const { keys, model } = await shelf(kit)
      // Both sides of the end of a session, and of the last moment for which a forward is kept.
      const ends = [kit.now + MINUTE, forwardEnd(kit.now, kit.now), forwardEnd(kit.now, kit.now + MINUTE)]
      const clocks = ends.flatMap(end => [end - 1, end])
      await kit.random(kit.rounds, async next => {
        const asked = Array.from({ length: 40 }, () => ({ key: pick(keys, next()), now: pick(clocks, next()) }))
        await askTogether(kit, model, asked, next)
        const key = pick(keys, next())
        await askTogether(
          kit,
          model,
          clocks.map(now => ({ key, now })),
          next,
        )
      })
    },
    async 'answers 1,000 and 5,000 readers in one turn, each its own'(kit) {
      const { keys, model } = await shelf(kit)
      await kit.random(1, async next => {
        for (const count of [1000, 5000]) {
          const asked = Array.from({ length: count }, () => ({ key: kit.key(), now: kit.now }))
          // Known ones everywhere among those that were never stored, the last included.
          for (const key of [...keys, ...keys]) asked[next() % count] = { key, now: kit.now }
          asked[count - 1] = { key: keys[0]!, now: kit.now }
          await askTogether(kit, model, asked, next)
        }
      })
    },
    async 'gives readers of one key in one turn equal answers, and to each an object of its own'(kit) {
      const record = await kit.put({ userId: kit.user() })
      const old = await kit.put({ userId: kit.user() })
      const { key: movedTo } = await kit.forward(old, kit.now + MINUTE, 'c2FsdA')
      const forward = { movedTo, salt: 'c2FsdA', until: kit.now + MINUTE }
      for (const [key, expected] of [
        [record.key, record],
        [old.key, forward],
      ] as const) {
        const readers = Array.from({ length: 4 }, () => kit.read(key))
        for (const answer of await Promise.all(readers)) {
          same(answer, expected)
          spoil(answer!)
        }
        same(await kit.read(key), expected)
      }
    },
  }),
  ...rulesWith('corrupt', {
    async 'reports a corrupted record to its own readers alone, in one turn with others'(kit) {
      const { keys, model } = await shelf(kit)
      const userId = kit.user()
      const neighbours = [await kit.put({ userId }), await kit.put({ userId })]
      const damaged = [await kit.put(), await kit.put({ userId })]
      for (const { key } of damaged) await kit.options.corrupt!(kit.store, key)
      const isDamaged = (key: string) => damaged.some(record => record.key === key)
      const ours = [...neighbours, ...damaged, ...damaged].map(({ key }) => key)
      const asked = [...keys.slice(0, 20), ...ours, ...keys.slice(20)]
      const answers = await Promise.all(asked.map(key => kit.read(key)))
      for (const { key } of damaged) {
        // Twice the same key: the one reader may be told, and the other find that nothing is left.
        const told = answers.filter((answer, index) => asked[index] === key && answer !== null)
        assert.ok(told.length > 0, 'the record is damaged, but no reader was told')
        for (const answer of told) assert.ok('corrupt' in answer!, 'a damaged record passed for a sound one')
        assert.equal(await kit.read(key), null)
      }
      for (const [index, key] of asked.entries()) {
        const neighbour = neighbours.find(record => record.key === key)
        if (!isDamaged(key)) same(answers[index], neighbour ?? (await model.read(key, kit.call)))
      }
      for (const record of neighbours) await kit.isExactly(record)
    },
  }),
  ...rules({
    async 'finds nothing under a key of another shape, and readers in the same turn do not notice'(kit) {
      const records = await Promise.all(Array.from({ length: 10 }, () => kit.put({ userId: kit.user() })))
      const { key } = records[0]!
      const refusable = [`${key.slice(0, 45)}\0`, 'x'.repeat(100_000)]
      const odd = [
        ...ODD_KEYS,
        ...refusable,
        key.slice(0, 45),
        `${key}x`,
        `${key} `,
        ` ${key}`,
        key.slice(3),
        `${key}${key}`,
      ]
      await kit.random(kit.rounds, async next => {
        odd.push(...odd.splice(0, next() % odd.length))
        const read = ({ key }: { key: string }) => kit.read(key, { deadline: later() })
        const [first, refused, last] = await Promise.all([
          Promise.all(records.slice(0, 5).map(read)),
          Promise.allSettled(odd.map(key => read({ key }))),
          Promise.all(records.slice(5).map(read)),
        ])
        for (const [index, answer] of [...first, ...last].entries()) same(answer, records[index]!)
        // A store may refuse a text that is no key. It may not find anything.
        for (const outcome of refused) if (outcome.status === 'fulfilled') assert.equal(outcome.value, null)
      })
    },
    async 'lets a reader whose time is over fail alone, in one turn with others'(kit) {
      const record = await kit.put()
      const others = await Promise.all(Array.from({ length: 5 }, () => kit.put()))
      const read = ({ key }: SessionRecord, deadline: number) => kit.read(key, { deadline })
      const early = [performance.now() - 1000, performance.now(), 0]
      const [before, answers, after] = await Promise.all([
        Promise.allSettled(early.map(deadline => read(record, deadline))),
        Promise.all([...others, record].map(other => read(other, later()))),
        Promise.allSettled(early.map(deadline => read(others[0]!, deadline))),
      ])
      for (const [index, answer] of answers.entries()) same(answer, [...others, record][index]!)
      // Nothing has to be answered after its time. An answer has to be right: no session ends by a lack of time.
      for (const outcome of before) if (outcome.status === 'fulfilled') same(outcome.value, record)
      for (const outcome of after) if (outcome.status === 'fulfilled') same(outcome.value, others[0]!)
    },
    'shows a write to a reader that asks after its acknowledgement, though others of that key are under way': kit =>
      kit.random(kit.rounds, async next => {
        for (const write of WRITES) {
          const record = await kit.put({ userId: kit.user() })
          const read = () => kit.read(record.key)
          const before = Promise.all([read(), read()])
          before.catch(() => {}) // waited for below
          for (let turns = next() % 4; turns > 0; turns--) await turn()
          const meanwhile = read()
          meanwhile.catch(() => {})
          const expected = await write(kit, record)
          const [after, early] = await Promise.all([Promise.all([read(), read()]), Promise.all([before, meanwhile])])
          for (const answer of after) same(answer, expected)
          for (const answer of early.flat()) if (!isSame(answer, record)) same(answer, expected)
        }
      }),
    'shows many visitors at once what they wrote, and nothing that was never there': kit =>
      kit.random(Math.ceil(kit.rounds / 4), async next => {
        await Promise.all(Array.from({ length: 10 }, () => readAndWrite(kit, next())))
      }),
  }),
  ...rulesWith('outage', {
    async 'rejects for each of many readers in one turn while its commands fail: an outage ends no session'(kit) {
      const { keys, model } = await shelf(kit)
      const asked = [...keys, ...keys].map(key => ({ key, now: kit.now }))
      const undo = await kit.options.outage!(kit.store)
      try {
        for (const readers of [asked, asked.slice(0, 1)]) {
          const outcomes = await Promise.allSettled(readers.map(({ key, now }) => kit.read(key, { now })))
          for (const { status } of outcomes) assert.equal(status, 'rejected', 'an outage passed for an answer')
        }
      } finally {
        await undo()
      }
      await askTogether(kit, model, asked, () => 0)
    },
  }),
]
