import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { runInNewContext } from 'node:vm'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'

const user = { id: 1, name: 'ada' }

it('the life of a session is told in order, with keys', async () => {
  const events: any[] = []
  let now = Date.now()
  const sessions = new SessionManager({
    store: new MemoryStore(),
    sweepInterval: false,
    now: () => now,
    onEvent: event => events.push(event),
  })
  const a = await sessions.create()
  const b = await sessions.logIn(a, { user })
  const c = (await sessions.regenerate(b, { grace: '1m' }))!
  await sessions.destroy(c)
  await sessions.destroy(c)
  const d = await sessions.create({ user })
  await sessions.revoke(1, d.key)
  const e = await sessions.create({ user })
  await sessions.invalidateUser(1)
  const f = await sessions.create()
  now += 1_800_000
  await sessions.get(f)
  expect(events).toEqual([
    { type: 'created', key: a.key, userId: null, remembered: false },
    { type: 'regenerated', key: b.key, oldKey: a.key, userId: 1n },
    { type: 'regenerated', key: c.key, oldKey: b.key, userId: 1n },
    { type: 'destroyed', key: c.key, userId: 1n, reason: 'logout' },
    { type: 'created', key: d.key, userId: 1n, remembered: false },
    { type: 'destroyed', key: d.key, userId: 1n, reason: 'revoked' },
    { type: 'created', key: e.key, userId: 1n, remembered: false },
    { type: 'invalidated', userId: 1n, count: 1 },
    { type: 'created', key: f.key, userId: null, remembered: false },
    { type: 'expired', key: f.key, userId: null },
  ])
})

it('the diagnostics channel hears the same objects', async () => {
  const [events, published]: unknown[][] = [[], []]
  const onMessage = (message: unknown) => published!.push(message)
  subscribe('coatcheck', onMessage)
  const sessions = new SessionManager({
    store: new MemoryStore(),
    sweepInterval: false,
    onEvent: event => events!.push(event),
  })
  await sessions.destroy(await sessions.create())
  unsubscribe('coatcheck', onMessage)
  await sessions.create()
  expect(events).toHaveLength(3)
  // A manager of another test may still tell something there.
  expect(published!.filter(event => events!.includes(event))).toEqual(events!.slice(0, 2))
})

it.each([
  [
    'throws',
    () => {
      throw new Error('log is full')
    },
  ],
  [
    'throws what is no error',
    () => {
      throw 'log is full'
    },
    '"log is full"',
  ],
  ['rejects', () => Promise.reject(new Error('log is full'))],
  ['rejects with a promise of another realm', () => runInNewContext("Promise.reject('log is full')"), '"log is full"'],
  ...[
    ['an object without a prototype', Object.create(null), 'an object'],
    [
      'what throws where it is shown',
      {
        toString: () => {
          throw new Error('no')
        },
      },
      'an object',
    ],
    ['an error whose message is a symbol', Object.assign(new Error('x'), { message: Symbol('x') }), 'Symbol(x)'],
  ].flatMap(
    ([what, thrown, reason]) =>
      [
        [
          `throws ${what}`,
          () => {
            throw thrown
          },
          reason,
        ],
        [`rejects with ${what}`, () => Promise.reject(thrown), reason],
      ] as [string, () => unknown, string][],
  ),
] as [string, () => unknown, string?][])(
  'a listener that %s becomes a process warning, and the session goes on',
  async (_, onEvent, reason = 'log is full') => {
    const warnings: Error[] = []
    // Others of this thread may warn meanwhile.
    const onWarning = (warning: Error) => /^onEvent threw/.test(warning.message) && warnings.push(warning)
    process.on('warning', onWarning)
    const sessions = new SessionManager({
      store: new MemoryStore(),
      sweepInterval: false,
      onEvent: onEvent as () => void,
    })
    const session = await sessions.create()
    expect(await sessions.get(session.secret)).not.toBeNull()
    await new Promise(resolve => setImmediate(resolve))
    process.off('warning', onWarning)
    expect(warnings.map(({ name, message }) => [name, message])).toEqual([
      ['CoatcheckWarning', `onEvent threw at 'created': ${reason}`],
    ])
  },
)
