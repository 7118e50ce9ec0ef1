// examples/watch.mjs in one process. Over processes: watch.engines.test.ts.
import { type Session, SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { watchSessions } from '../../examples/watch.mjs'

const MINUTE = 60_000
beforeEach(() => void vi.useFakeTimers())

/** A store that can be away. */
class Frail extends MemoryStore {
  isDown = false
  override async read(...call: Parameters<MemoryStore['read']>) {
    if (this.isDown) throw new Error('away')
    return super.read(...call)
  }
}

async function setUp({ store = new Frail(), every = 10 * MINUTE, options = {} } = {}) {
  const told: string[] = []
  let hear = (_: string) => {}
  const channel = {
    publish: async (text: string) => void told.push(text),
    subscribe: async (listener: (text: string) => void) => {
      hear = listener
    },
  }
  const errors: unknown[] = []
  const { onEvent, start, watch } = watchSessions({ channel, every, onError: error => errors.push(error) })
  const sessions = new SessionManager({ ...options, store, onEvent, sweepInterval: false })
  await start(sessions)
  const ended: string[] = []
  const logIn = () => sessions.create({ user: { id: 42n, name: 'ada' } })
  const open = (session: Session, name: string, close: () => unknown = () => ended.push(name)) => watch(session, close)
  const settle = () => vi.advanceTimersByTimeAsync(0)
  const elsewhere = new SessionManager({ store, sweepInterval: false })
  return { sessions, elsewhere, store, told, errors, ended, logIn, open, settle, hear: (text: string) => hear(text) }
}

describe('what is watched', () => {
  it('ends once with its session, and what listens for others does not', async () => {
    const { sessions, ended, logIn, open, settle } = await setUp()
    const [laptop, phone] = [await logIn(), await logIn()]
    open(laptop, 'laptop, first')
    open(laptop, 'laptop, second')
    open(phone, 'phone')
    await sessions.destroy(laptop)
    await settle()
    expect(ended).toEqual(['laptop, first', 'laptop, second'])
    await sessions.invalidateUser(42n)
    await settle()
    expect(ended.slice(2)).toEqual(['phone'])
  })

  it('ends if the session has ended between its request and now', async () => {
    const { elsewhere, ended, logIn, open, settle } = await setUp()
    const session = await logIn()
    await elsewhere.destroy(session)
    open(session, 'late')
    await settle()
    expect(ended).toEqual(['late'])
  })

  it('ends if such a socket comes while those of the same session are closed', async () => {
    const { sessions, ended, logIn, open, settle } = await setUp()
    const session = await logIn()
    const forget = open(session, 'first')
    await settle()
    await sessions.destroy(session)
    await settle()
    open(session, 'late')
    forget()
    await settle()
    expect(ended).toEqual(['first', 'late'])
  })

  it('ends soon after its session has expired, though others keep using theirs', async () => {
    const { sessions, ended, logIn, open } = await setUp({ every: 10 * 60 * MINUTE })
    const [idle, used] = [await logIn(), await logIn()]
    open(idle, 'idle')
    open(used, 'used')
    for (let minutes = 0; minutes < 29; minutes++) {
      await vi.advanceTimersByTimeAsync(MINUTE)
      await sessions.get(used.secret)
    }
    expect(ended).toEqual([])
    await vi.advanceTimersByTimeAsync(MINUTE + 1000)
    expect(ended).toEqual(['idle'])
    await vi.advanceTimersByTimeAsync(31 * MINUTE)
    expect(ended).toEqual(['idle', 'used'])
  })

  it('ends with the ID that it came with, and lives through a new ID as long as that one does', async () => {
    const { sessions, ended, logIn, open, settle } = await setUp({ every: 2 * MINUTE })
    const [first, second] = [await logIn(), await logIn()]
    open(first, 'first')
    open(second, 'second')
    await sessions.regenerate(first)
    const renewed = await sessions.regenerate(second, { grace: '1m' })
    await settle()
    expect(ended).toEqual(['first'])
    // What happens to it under its new name still counts.
    await sessions.destroy(renewed!)
    await settle()
    expect(ended).toEqual(['first', 'second'])
  })

  it('outlives an outage, of which one error tells', async () => {
    const { store, elsewhere, errors, ended, logIn, open, settle } = await setUp()
    const sessions = [await logIn(), await logIn(), await logIn()]
    for (const session of sessions) open(session, session.key)
    await settle()
    await elsewhere.destroy(sessions[0]!)
    store.isDown = true
    await vi.advanceTimersByTimeAsync(10 * MINUTE)
    expect(ended).toEqual([])
    expect(errors).toEqual([expect.any(SessionStoreError)])
    store.isDown = false
    await vi.advanceTimersByTimeAsync(10 * MINUTE)
    expect(ended).toEqual([sessions[0]!.key])
  })

  it('ends though more sessions are watched than the store may be asked for at once', async () => {
    const { elsewhere, errors, ended, logIn, open, settle } = await setUp()
    const sessions: Awaited<ReturnType<typeof logIn>>[] = []
    while (sessions.length < 5500) {
      const begun = await Promise.all(Array.from({ length: 500 }, logIn))
      for (const session of begun) open(session, session.key)
      await settle()
      sessions.push(...begun)
    }
    const last = sessions.at(-1)!
    await elsewhere.destroy(last)
    await vi.advanceTimersByTimeAsync(10 * MINUTE)
    expect(errors).toEqual([])
    expect(ended).toEqual([last.key])
  })

  it('does not keep the store busy, though its session lives for longer than a timer can wait', async () => {
    const { store, logIn, open, settle } = await setUp({ options: { idleTimeout: '60d', absoluteTimeout: '60d' } })
    open(await logIn(), 'kept')
    await settle()
    const read = vi.spyOn(store, 'read')
    await vi.advanceTimersByTimeAsync(5000)
    expect(read).not.toHaveBeenCalled()
  })

  it('is forgotten when its socket has closed: the store is not asked again', async () => {
    const { store, logIn, open, settle } = await setUp()
    const session = await logIn()
    for (const forget of [open(session, 'first'), open(session, 'second')]) forget()
    await settle()
    const read = vi.spyOn(store, 'read')
    await vi.advanceTimersByTimeAsync(60 * MINUTE)
    expect(read).not.toHaveBeenCalled()
  })
})

it('one that fails to close keeps no other from being closed', async () => {
  const { sessions, errors, ended, logIn, open, settle } = await setUp()
  const session = await logIn()
  open(session, 'broken', () => {
    throw new Error('not open')
  })
  open(session, 'good')
  await sessions.destroy(session)
  await settle()
  expect([ended, errors]).toEqual([['good'], [new Error('not open')]])
})

describe('a message', () => {
  it('holds keys and users alone, and as many as PostgreSQL carries', async () => {
    const { sessions, told, settle } = await setUp()
    const id = '–'.repeat(128)
    const strings = new SessionManager({
      store: new MemoryStore(),
      userIds: 'string',
      sweepInterval: false,
      onEvent: sessions.options.onEvent as never,
    })
    const held = await Promise.all(Array.from({ length: 50 }, () => strings.create({ user: { id, name: 'ada' } })))
    await Promise.all(held.map(session => strings.destroy(session)))
    await settle()
    expect(told.flatMap(text => JSON.parse(text))).toEqual(held.map(({ key }) => [key, id]))
    for (const text of told) expect(Buffer.byteLength(text)).toBeLessThan(8000)
    for (const { secret } of held) expect(told.join()).not.toContain(secret)
  })

  it('ends nothing by itself, whatever it says', async () => {
    const { hear, errors, ended, logIn, open, settle } = await setUp()
    const session = await logIn()
    open(session, 'socket')
    for (const text of ['', 'x', '5', 'null', '[null]', '[[]]', JSON.stringify([[session.key, '42']])]) hear(text)
    await settle()
    expect(ended).toEqual([])
    expect(errors.length).toBe(5)
  })

  it('makes a node look again', async () => {
    const { hear, elsewhere, ended, logIn, open, settle } = await setUp()
    const session = await logIn()
    open(session, 'socket')
    await settle()
    await elsewhere.destroy(session)
    await settle()
    expect(ended).toEqual([])
    hear(JSON.stringify([[session.key, '']]))
    await settle()
    expect(ended).toEqual(['socket'])
  })
})
