// What says that a session of the other library is over: it outlives each way in which the old record can come back.
import { openVisit } from 'coatcheck/custom-server'
import type { SessionRecord } from 'coatcheck/custom-store'
import { fromExpressSession, sessionImporter } from 'coatcheck/import'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { ada, BEGIN, connectSid, cookieAt, HOUR, MINUTE, OLD, SECRET, SID, withAda } from '../support/old-sessions.ts'
import { onlyHost } from '../support/only-host.ts'

const DAY = 24 * HOUR

/** A replacement with one live old session, of ada, whose old store cannot remove anything. */
function stubborn(cookie: unknown) {
  const world = withAda({ cookie })
  world.old.fault = verb => (verb === 'destroy' ? new Error('READONLY') : null)
  return world
}

/** The notes that were written first, in their order. */
const notesIn = ({ store }: ReturnType<typeof stubborn>) =>
  store.calls.filter(({ verb, args }) => verb === 'create' && args[0].kind === 'remember').map(({ args }) => args[0])

describe('an old session that has ended, and whose record comes back,', () => {
  /** Takes the session over and logs out, by the new cookie alone; then the record is there anew. */
  async function loggedOut(cookie: unknown, record: object = {}) {
    const world = stubborn(cookie)
    world.put(record)
    const { next } = await world.one.ask(OLD)
    const ours = /session_id=[^;]*/.exec(next())![0]
    const { visit, name } = await world.one.ask(ours)
    expect(name).toBe('ada')
    await visit.logOut()
    const comeAt = async (at: number, records: object, isSwept = true) => {
      world.clock.now = at
      if (isSwept) await world.one.sessions.sweep()
      world.put(records)
      return (await world.two.ask(OLD)).name
    }
    return { ...world, comeAt }
  }

  it('stays over where a late answer of an old node begins its time anew, however little of it was left', async () => {
    const long = 14 * DAY
    const { comeAt } = await loggedOut(cookieAt(BEGIN - long + HOUR, long), { loginAt: BEGIN })
    const late = { cookie: cookieAt(BEGIN + MINUTE, long), loginAt: BEGIN + 13 * DAY }
    expect(await comeAt(BEGIN + 13 * DAY, late)).toBeNull()
  })

  it('stays over, and hangs no request, where what says so has expired and was not swept yet', async () => {
    const { comeAt, old, store } = await loggedOut(cookieAt(BEGIN))
    for (const days of [40, 41, 400]) {
      const at = BEGIN + days * DAY
      store.calls.length = 0
      expect(await comeAt(at, { cookie: cookieAt(at), loginAt: at }, false)).toBeNull()
      expect(store.calls.length).toBeLessThan(4)
    }
    expect(old.records.size).toBe(1)
  })

  it('costs no write of the notes at each request', async () => {
    const { two, store, clock } = await loggedOut(cookieAt(BEGIN))
    store.calls.length = 0
    // What says so lives 36 hours: as long as a session of ours, and a day.
    for (const at of [1, 2, 3, 4, 5, 6, 7, 8, 9, 18]) {
      clock.now = BEGIN + at * HOUR
      await two.ask(OLD)
    }
    expect(new Set(store.calls.map(({ verb }) => verb))).toEqual(new Set(['read']))
  })
})

describe('what says that an old session is over', () => {
  it.each([
    ['an hour, which is less than a session of ours may live', { seenAt: BEGIN, expiresAt: BEGIN + HOUR }, 1.5],
    ['from its last use', { createdAt: BEGIN - HOUR, seenAt: BEGIN, expiresAt: BEGIN + 20 * DAY }, 41],
    ['from its begin, where no use is known', { createdAt: BEGIN - 6 * HOUR, expiresAt: BEGIN + 20 * DAY }, 41.5],
    ['for ten years', { seenAt: BEGIN, expiresAt: BEGIN + 3650 * DAY }, 400],
    ['without an end', { seenAt: BEGIN }, 400],
    ['from nobody knows when', { expiresAt: BEGIN + 20 * DAY }, 400],
  ])(
    'is kept twice as long as its record could live, at least as long as a session of ours, and a day: %s',
    async (_, times, days) => {
      const world = stubborn({})
      await world
        .node({ importer: { from: { cookie: 'token', read: () => ({ data: ada, ...times }) } } })
        .ask('token=t')
      const [{ expiresAt }] = notesIn(world)
      expect((expiresAt - BEGIN) / DAY).toBe(days)
    },
  )
})

describe('a logout everywhere', () => {
  const sidOf = (text: string) => `${text}${SID}`.slice(0, 32)
  const comes = async (world: ReturnType<typeof stubborn>, name: string, loginAt: number) => {
    world.old.put(sidOf(name), { cookie: cookieAt(world.clock.now), ...ada, loginAt })
    return (await world.two.ask(connectSid(sidOf(name)))).name
  }

  it('that is repeated later ends what began between both', async () => {
    const world = stubborn({})
    await world.one.importer.invalidateUser(42n)
    world.clock.now = BEGIN + 2 * HOUR
    expect(await comes(world, 'before', BEGIN + HOUR)).toBe('ada')
    await world.two.importer.invalidateUser(42n)
    expect(await comes(world, 'between', BEGIN + HOUR)).toBeNull()
    world.clock.now = BEGIN + 3 * HOUR
    expect(await comes(world, 'after', BEGIN + 150 * MINUTE)).toBe('ada')
  })

  it('that comes twice at one moment, on two nodes, ends what there is', async () => {
    const world = stubborn({})
    await Promise.all([world.one, world.two, world.one].map(each => each.importer.invalidateUser(42n)))
    world.clock.now = BEGIN + HOUR
    await Promise.all([world.one, world.two, world.one].map(each => each.importer.invalidateUser(42n)))
    expect(await comes(world, 'old', BEGIN + 30 * MINUTE)).toBeNull()
  })

  it('that is repeated when the earlier one has expired, and was not swept yet, ends what there is', async () => {
    const world = stubborn({})
    await world.one.importer.invalidateUser(42n)
    world.clock.now = BEGIN + 401 * DAY
    await world.two.importer.invalidateUser(42n)
    expect(await comes(world, 'old', BEGIN + 401 * DAY - HOUR)).toBeNull()
  })

  it('ends what there is also where the note of an earlier one is swept away at that moment', async () => {
    const world = stubborn({})
    await world.one.importer.invalidateUser(42n)
    world.clock.now = BEGIN + HOUR
    world.store.next('create', async (proceed, [{ key }]) => {
      const answer = await proceed()
      await world.store.inner.delete(key, { now: world.clock.now, deadline: 0 } as never)
      return answer
    })
    await world.two.importer.invalidateUser(42n)
    expect(await comes(world, 'old', BEGIN + 30 * MINUTE)).toBeNull()
  })

  it('ends what began at a node whose clock is ahead by minutes, and what nothing tells the begin of', async () => {
    const world = stubborn({})
    await world.one.importer.invalidateUser(42n)
    world.clock.now = BEGIN + 10 * MINUTE
    expect(await comes(world, 'ahead', BEGIN + 4 * MINUTE)).toBeNull()
    expect(await comes(world, 'by the tolerance', BEGIN + 5 * MINUTE)).toBeNull()
    expect(await comes(world, 'unknown', undefined as never)).toBeNull()
    expect(await comes(world, 'later', BEGIN + 6 * MINUTE)).toBe('ada')
  })
})

describe('one store for', () => {
  it('two tenants, whose old services gave the same ID: each imports its own', async () => {
    const { one, old } = stubborn(cookieAt(BEGIN))
    for (const tenant of ['north', 'south']) {
      const sessions = one.sessions.namespace(tenant)
      const importer = sessionImporter(sessions, {
        from: fromExpressSession<{ name: string }>({ secret: SECRET, store: old }),
        toLogin: ({ name }) => ({ user: { id: 42n, name: `${name} of the ${tenant}` } }),
      })
      const { visit } = await importer.import(OLD, header =>
        openVisit(sessions, { method: 'GET', secure: true, cookie: header, header: onlyHost }),
      )
      expect((await visit.get())?.user?.name).toBe(`ada of the ${tenant}`)
    }
  })

  it('two old libraries that gave the same ID, or one that is the ID of a user: each is known by itself', async () => {
    const world = stubborn({})
    const cookies = ['token', 'ticket']
    for (const cookie of cookies) {
      const read = (id: string) => ({ data: { ...ada, name: `${id} of the ${cookie}` } })
      const node = world.node({ importer: { from: { cookie, read } } })
      await node.importer.invalidateUser(7n)
      for (const id of ['7', '42']) expect((await node.ask(`${cookie}=${id}`)).name).toBe(`${id} of the ${cookie}`)
    }
  })
})

describe('a note that cannot be read', () => {
  it.each(['', 'no note', 'KEY', 'KEY ', 'KEY SALT more', 'SALT KEY'])(
    'counts as an end: no session begins twice, and the user logs in again: "%s"',
    async form => {
      const world = stubborn(cookieAt(BEGIN))
      await world.one.ask(OLD)
      const asked = world.old.asked.filter(each => each.startsWith('get')).length
      let isMet = false
      world.store.every('read', async proceed => {
        const record = (await proceed()) as SessionRecord | null
        if (record?.kind !== 'remember') return record
        isMet = true
        const [key, salt] = record.data.split(' ') as [string, string]
        return { ...record, data: form.replace('KEY', key).replace('SALT', salt) }
      })
      expect(await world.two.ask(OLD)).toMatchObject({ name: null, removed: ['connect.sid'] })
      expect(isMet).toBe(true)
      expect(world.old.asked.filter(each => each.startsWith('get'))).toHaveLength(asked)
    },
  )
})

describe('a note that the store calls damaged', () => {
  it('is told as an event, with its key and the reason', async () => {
    const world = stubborn(cookieAt(BEGIN))
    await world.one.ask(OLD)
    const [{ key }] = notesIn(world)
    world.store.next('read', faults.answers({ corrupt: 'data is no text' }))
    await world.two.ask(OLD)
    const told = world.events.filter(({ type }) => type === 'corrupt-record')
    expect(told).toEqual([{ type: 'corrupt-record', key, cause: 'data is no text' }])
  })
})
