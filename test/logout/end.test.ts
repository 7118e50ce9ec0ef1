// What the end of a session means for later requests of its browser, in the process that ended it, and what is told of it.

import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { onlyHost } from '../support/only-host.ts'

const user = { id: 1, name: 'ada' }

function setUp(options: object = {}) {
  const events: any[] = []
  const sessions = new SessionManager({
    store: new MemoryStore(),
    sweepInterval: false,
    onEvent: event => events.push(event),
    ...options,
  })
  const request = ({ secret }: { secret: string }) =>
    openVisit(sessions, { method: 'POST', secure: true, header: onlyHost, cookie: `session_id=${secret}` })
  return { events, sessions, request }
}

it('after a logout nothing begins in the place of the session', async () => {
  const { sessions, request } = setUp()
  const session = await sessions.create({ user })
  await sessions.destroy(session)
  await expect(request(session).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
  expect(await sessions.count()).toBe(0)
})

it('after a login with a cookie that finds nothing any more, nothing begins by a late request with that cookie', async () => {
  const { sessions, request } = setUp()
  const gone = await setUp().sessions.create()
  const login = await sessions.logIn(gone.secret, { user })
  await expect(request(gone).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
  expect((await sessions.get(login.secret))?.user?.id).toBe(1n)
  expect(await sessions.count()).toBe(1)
})

it('after it was revoked from another device its browser begins as a visitor', async () => {
  const { sessions, request } = setUp()
  const session = await sessions.create({ user })
  await sessions.revoke(1, session.key)
  const visitor = await request(session).create()
  expect((await sessions.get(visitor.secret))?.user).toBeNull()
})

describe('a session that the limit of its user ends', () => {
  it('is told with its user, and its browser begins as a visitor', async () => {
    const { sessions, events, request } = setUp({ limit: { max: 1, onLimit: 'end-oldest' } })
    const first = await sessions.create({ user })
    events.length = 0
    const second = await sessions.create({ user })
    expect(events).toEqual([
      { type: 'destroyed', key: first.key, userId: 1n, reason: 'limit' },
      { type: 'created', key: second.key, userId: 1n, remembered: false },
    ])
    const visitor = await request(first).create()
    expect((await sessions.get(visitor.secret))?.user).toBeNull()
  })
})
