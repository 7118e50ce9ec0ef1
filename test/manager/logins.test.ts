// What a login of one request is to others that the same browser sent beside it.

import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type LogIn, LogIns } from '../../src/manager/logins.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const user = { id: 42, name: 'ada' }
const logIn = () => ({ at: performance.now() }) as LogIn

it('is known for a minute from then, and not a moment longer, whatever else is logged in meanwhile', () => {
  // Wherever in the life of what is kept it comes.
  for (const earlier of [0, 1, 30_000, 59_999, 60_000, 90_000]) {
    const logIns = new LogIns()
    vi.advanceTimersByTime(1_000_000)
    logIns.add(['earlier'], logIn())
    vi.advanceTimersByTime(earlier)
    const mine = logIn()
    logIns.add(['mine'], mine)
    vi.advanceTimersByTime(59_999)
    expect(logIns.of(['mine'])).toBe(mine)
    vi.advanceTimersByTime(1)
    expect(logIns.of(['mine'])).toBeNull()
  }
})

it('is known by each of the keys that its request came with, and forgotten by those that are named', () => {
  const logIns = new LogIns()
  const mine = logIn()
  expect(logIns.of([])).toBeNull()
  logIns.add(['session', 'series'], mine)
  expect(logIns.of(['session'])).toBe(mine)
  expect(logIns.of(['other', 'series'])).toBe(mine)
  logIns.delete(['session'])
  expect([logIns.of(['session']), logIns.of(['series'])]).toEqual([null, mine])
  logIns.delete(['session', 'series'])
  expect(logIns.of(['session', 'series'])).toBeNull()
})

it('ends with the logout of a request that came with the same cookie', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const before = await sessions.create()
  const open = () =>
    openVisit(sessions, {
      method: 'POST',
      secure: true,
      header: () => null,
      cookie: `session_id=${before.secret}`,
    })
  const [login, logOut] = [open(), open()]
  const { secret } = await login.logIn({ user })
  await logOut.logOut()
  expect(await sessions.get(secret)).toBeNull()
  expect(await sessions.list(42)).toEqual([])
})
