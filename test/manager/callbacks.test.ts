// The habits of express-session and Passport, whose verbs take callbacks.

import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, describe, expect, it } from 'vitest'

const sessions = new SessionManager({ store: new MemoryStore(), rememberFor: '30d', sweepInterval: false })
const open = () => openVisit(sessions, { method: 'POST', cookie: null, secure: true, header: () => null })
const rejections: unknown[] = []
const note = (error: unknown) => rejections.push(error)
process.on('unhandledRejection', note)
afterEach(() => {
  expect(rejections).toEqual([])
})

/** All methods of an object, so that a verb that is new is among them. */
const verbsOf = (target: object, except: readonly string[]) =>
  Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(target)))
    .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor' && !except.includes(name))
    .map(([name]) => name)

type Verbs = Record<string, (...values: unknown[]) => unknown>
const called: unknown[] = []
const callback = (...values: unknown[]) => called.push(values)

describe.each([
  ['visit', () => open() as unknown as Verbs, verbsOf(open(), ['headRules']), 0],
  ['sessions', () => sessions as unknown as Verbs, verbsOf(sessions, ['isFresh', 'namespace', 'all']), 1],
] as const)('%s', (owner, make, verbs, change) => {
  it('has the verbs that its users know', () => {
    expect(verbs).toEqual(
      expect.arrayContaining([
        'get',
        'create',
        'update',
        'take',
        'regenerate',
        'rotate',
        owner === 'visit' ? 'logOut' : 'destroy',
      ]),
    )
  })

  it.each(verbs)('%s refuses a callback at once, and says to await it', async verb => {
    for (const values of [[callback], [undefined, callback], [undefined, undefined, callback], [async () => {}]]) {
      if (/^update/.test(verb) && typeof values[change] === 'function') continue
      const target = make()
      expect(() => target[verb]!(...values)).toThrow(TypeError)
      expect(() => target[verb]!(...values)).toThrow(
        `${owner}.${verb}: takes no callback, it returns a promise: await it`,
      )
    }
    await new Promise(setImmediate)
    expect(called).toEqual([])
  })
})

it('functions go on where they belong: the change of an update, the data of a login', async () => {
  const visit = open()
  await visit.update(data => {
    data.n = 1
  })
  const session = await visit.logIn({ user: { id: 1, name: 'ada' }, data: before => before })
  expect(session.data.n).toBe(1)
  const again = await sessions.update(session, data => {
    data.n = 2
  })
  expect(again?.data.n).toBe(2)
  // A second function is a callback, as it is anywhere.
  expect(() => (visit.update as (...values: unknown[]) => unknown)({ n: 3 }, callback)).toThrow(/await it/)
  expect(() => (sessions.update as (...values: unknown[]) => unknown)(session, { n: 3 }, callback)).toThrow(/await it/)
})

it('what Passport does with req.session reaches its caller as an error', () => {
  // Its session manager: req.session.regenerate(error => …), within the try of the strategy.
  const request = { session: open() as unknown as Verbs }
  expect(() => request.session.regenerate!(() => {})).toThrow('visit.regenerate: takes no callback')
  expect(() => request.session.logOut!(() => {})).toThrow('visit.logOut: takes no callback')
})
