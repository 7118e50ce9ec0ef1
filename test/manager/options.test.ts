import { inspect } from 'node:util'
import { DEFAULTS, presets, type Session, type SessionId, SessionManager } from 'coatcheck'
import { openVisit, SessionCookie } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeSessions } from '../support/edge-service.ts'
import { openWith, setUp, user } from '../support/manager-kit.ts'
import { onlyHost } from '../support/only-host.ts'

const build = (options: object) => () => new SessionManager({ store: new MemoryStore(), ...options } as never)

it('the store has no default', () => {
  expect(() => new SessionManager({} as never)).toThrow(
    "store: expected a store such as new MemoryStore() from 'coatcheck/stores/memory', got undefined",
  )
  for (const options of [undefined, null, 'memory', 7])
    expect(() => new SessionManager(options as never)).toThrow(TypeError)
})

it('a thing that is no store is refused with the methods that it lacks', () => {
  expect(build({ store: 'memory' })).toThrow('got "memory"')
  expect(build({ store: null })).toThrow(/, got null$/)
  // One that has none of them is no store at all.
  expect(build({ store: {} })).toThrow(/, got an object$/)
  expect(build({ store: { create() {}, read() {}, update() {}, touch() {}, replace() {}, delete() {} } })).toThrow(
    'got an object without deleteUser, listUser',
  )
})

it('a URL in place of a store is refused without its password', () => {
  for (const url of [
    'redis://:hunter2@host:6379',
    ' rediss://u:hunter2@host',
    'postgres://u:hunter2@host/db',
    'redis://host?password=hunter2',
  ])
    for (const options of [{ store: url }, url, { store: [url] }, { store: { url } }]) {
      let error: unknown
      try {
        new SessionManager(options as never)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toBeInstanceOf(TypeError)
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hunter2')
    }
  expect(build({ store: 'redis://:hunter2@host' })).toThrow('got a URL (not shown: it may contain a password)')
})

describe('a wrong option is a TypeError that names it and quotes the value', () => {
  it.each<[string, object]>([
    ['idleTimeout: expected at most absoluteTimeout (43200000 ms), got "13h"', { idleTimeout: '13h' }],
    ['idleTimeout: expected at most absoluteTimeout (60000 ms), got "30m"', { absoluteTimeout: '1m' }],
    ['touchInterval: expected at most half of idleTimeout (1800000 ms), else', { touchInterval: '16m' }],
    ['storeTimeout: expected at most \'24d\', got "25d"', { storeTimeout: '25d' }],
    ['rememberFor: expected at most \'400d\', longer cookies are cut by browsers, got "401d"', { rememberFor: '401d' }],
    ['sweepInterval: expected at most \'12d\', got "13d"', { sweepInterval: '13d' }],
    ['sweepInterval: expected a duration', { sweepInterval: true }],
    ["userIds: expected 'bigint', 'number' or 'string', got \"u64\"", { userIds: 'u64' }],
    ['maxDataBytes: expected a whole number from 1 to 1048576, got 1048577', { maxDataBytes: 1_048_577 }],
    ['maxPendingCalls: expected a whole number from 1, got 0', { maxPendingCalls: 0 }],
    ['limit: expected an object of options, got 3 (there are: max, onLimit)', { limit: 3 }],
    ['limit.max: expected a whole number from 1, got 0', { limit: { max: 0 } }],
    ['limit.max: expected a whole number from 1, got undefined', { limit: {} }],
    [
      "limit.onLimit: expected 'refuse' or 'end-oldest', got \"end-newest\"",
      { limit: { max: 1, onLimit: 'end-newest' } },
    ],
    ["onTheft: expected 'end-device' or 'invalidate-user', got \"ignore\"", { onTheft: 'ignore' }],
    ['initial: expected a function, got an object', { initial: {} }],
    ['getPasswordVersion: expected a function, got 3', { getPasswordVersion: 3 }],
    ['onEvent: expected a function, got "log"', { onEvent: 'log' }],
    ['now: expected a function, got 1700000000000', { now: 1_700_000_000_000 }],
    ['codec: expected { encode(data), decode(text) }, got an object', { codec: { encode: () => '' } }],
    ['codec: expected { encode(data), decode(text) }, got an object', { codec: { decode: () => ({}) } }],
    ['schema: expected a Standard Schema (standardschema.dev), got an object', { schema: {} }],
  ])('%s', (message, options) => {
    expect(build(options)).toThrow(TypeError)
    expect(build(options)).toThrow(message)
  })
})

describe('an option that does not exist is refused, rather than ignored without a word', () => {
  const { sessions } = makeSessions()
  const places: Record<string, (options: object) => unknown> = {
    rememberCookie: options => nodeVisits(sessions, { rememberCookie: { name: 'keep', ...options } }),
    SessionManager: options => build(options)(),
    limit: options => build({ limit: { max: 1, ...options } })(),
    cookie: options => new SessionCookie(options),
    nodeVisits: options => nodeVisits(sessions, options),
    fetchVisits: options => fetchVisits(sessions, options),
    openVisit: options => openVisit(sessions, { method: 'GET', cookie: null, secure: true, header: onlyHost }, options),
  }

  it.each(Object.entries(places))('%s names it and all that there are', (where, make) => {
    expect(() => make({ nonsense: undefined })).toThrow(TypeError)
    // Of a member of every object no advice is given either.
    for (const name of ['nonsense', 'toString'])
      expect(() => make({ [name]: 1 })).toThrow(new RegExp(`^${where}: "${name}" is not an option \\(there are: `))
    expect(() => make({})).not.toThrow()
  })

  /** The names of a place, as its own message lists them. */
  const namesOf = (where: string): string[] => {
    try {
      places[where]!({ nonsense: 1 })
    } catch (error) {
      return /\(there are: (.*)\)$/.exec((error as Error).message)![1]!.split(', ')
    }
    throw new Error(`${where} took nonsense`)
  }

  it.each(Object.keys(places))('%s refuses a wrong value of each option by the same sentence', where => {
    const isMember = ['limit', 'cookie', 'rememberCookie', 'hsts'].includes(where)
    for (const name of namesOf(where)) {
      const path = isMember ? `${where}.${name}` : name
      expect(() => places[where]!({ [name]: Symbol('wrong') })).toThrow(TypeError)
      expect(() => places[where]!({ [name]: Symbol('wrong') })).toThrow(
        new RegExp(`^${path}: expected .+, got Symbol\\(wrong\\)`),
      )
    }
  })

  it('an option of the manager, of visits or of the cookie is known to the two others', () => {
    for (const [owner, others] of [
      ['SessionManager', ['cookie', 'nodeVisits', 'fetchVisits', 'openVisit']],
      ['cookie', ['SessionManager', 'nodeVisits', 'fetchVisits', 'openVisit']],
      ['nodeVisits', ['SessionManager', 'cookie']],
    ] as const)
      for (const name of namesOf(owner))
        for (const where of others)
          expect(() => places[where]!({ [name]: 1 })).toThrow(`${where}: "${name}" is not an option; it belongs to `)
  })

  it('one that belongs elsewhere is told where', () => {
    for (const [where, name, hint] of [
      ['SessionManager', 'cookie', 'it belongs to nodeVisits(sessions, { cookie })'],
      ['SessionManager', 'sameSite', 'it belongs to the cookie of nodeVisits: { cookie: { sameSite } }'],
      ['nodeVisits', 'store', 'it belongs to new SessionManager({ store })'],
      ['nodeVisits', 'name', 'it belongs to the cookie of nodeVisits: { cookie: { name } }'],
      ['cookie', 'idleTimeout', 'it belongs to new SessionManager({ idleTimeout })'],
      ['cookie', 'trustedProxies', 'it belongs to nodeVisits(sessions, { trustedProxies })'],
      ['fetchVisits', 'trustedProxies', 'it belongs to nodeVisits(sessions, { trustedProxies })'],
      ['openVisit', 'isSecure', 'it belongs to nodeVisits(sessions, { isSecure })'],
    ] as const) {
      expect(() => places[where]!({ [name]: 1 })).toThrow(`${where}: "${name}" is not an option; ${hint} (there are: `)
    }
  })
})

it('an option of undefined is the default', () => {
  const names =
    'idleTimeout storeTimeout userIds onTheft sweepInterval schema initial codec getPasswordVersion limit rememberFor now'
  expect(build(Object.fromEntries(names.split(' ').map(name => [name, undefined])))).not.toThrow()
})

it('sweepInterval is checked for a store that does not need it too', () => {
  const store = new MemoryStore()
  Object.defineProperty(store, 'sweep', { value: undefined })
  expect(build({ store, sweepInterval: 5 })).toThrow('sweepInterval: expected a duration')
})

it('the defaults and the presets cannot be changed', () => {
  const isFrozen = (value: unknown): boolean =>
    typeof value !== 'object' || (Object.isFrozen(value) && Object.values(value as object).every(isFrozen))
  expect([isFrozen(DEFAULTS), isFrozen(presets)]).toEqual([true, true])
})

const MINUTES: Record<string, number> = { m: 1, h: 60, d: 24 * 60 }

it('the presets keep to their sources: OWASP, and the limits of NIST SP 800-63B-4', () => {
  const minutes = (name: keyof typeof presets, option: 'idleTimeout' | 'absoluteTimeout') =>
    MINUTES[presets[name][option].slice(-1)]! * Number.parseInt(presets[name][option], 10)
  expect(minutes('highSecurity', 'idleTimeout')).toBeGreaterThanOrEqual(5)
  expect(minutes('highSecurity', 'idleTimeout')).toBeLessThanOrEqual(15)
  expect(minutes('ordinary', 'idleTimeout')).toBeGreaterThanOrEqual(30)
  expect(minutes('ordinary', 'idleTimeout')).toBeLessThanOrEqual(120)
  expect([minutes('aal2', 'idleTimeout'), minutes('aal2', 'absoluteTimeout')]).toEqual([60, 24 * 60])
  expect([minutes('aal3', 'idleTimeout'), minutes('aal3', 'absoluteTimeout')]).toEqual([15, 12 * 60])
  for (const preset of Object.values(presets)) expect(build(preset)).not.toThrow()
})

it('a clock that answers nonsense is a TypeError, not a session without an end', async () => {
  for (const now of [() => Number.NaN, () => undefined, () => Number.POSITIVE_INFINITY, () => '0']) {
    const sessions = new SessionManager({ store: new MemoryStore(), now: now as never, sweepInterval: false })
    await expect(sessions.create()).rejects.toThrow(/^now: expected epoch milliseconds, got /)
    await expect(sessions.get('x'.repeat(43) as SessionId)).rejects.toThrow(TypeError)
  }
})

describe('an option of a method that does not exist is refused: misspelt, it would let through what it was to stop', () => {
  type Call = (
    at: { sessions: SessionManager; session: Session; visit: ReturnType<typeof openWith> },
    options: any,
  ) => unknown
  const get: Call = ({ sessions, session }, options) => sessions.get(session, options)
  const look: Call = ({ visit }, options) => visit.get(options)
  const renew: Call = ({ sessions, session }, options) => sessions.regenerate(session, options)
  const logIn: Call = ({ sessions, session }, options) => sessions.logIn(session, options)
  const invalidate: Call = ({ sessions }, options) => sessions.invalidateUser(1, options)
  const TOKEN = 'logIn: "remember" is not an option; sessions.issueRememberToken(session) makes the token'
  const VERSION = 'logIn: "passwordVersion" is not an option; it belongs to user: { id, name, passwordVersion }'

  it.each<[object, string, Call]>([
    [{ freshWthin: '5m' }, 'requireUser: "freshWthin" is not an option', ({ visit }, each) => visit.requireUser(each)],
    [{ touch: 0 }, 'touch: expected true or false, got 0', look],
    [{ touch: 'no' }, 'touch: expected true or false, got "no"', get],
    [{ touh: false }, 'get: "touh" is not an option (there are: ', look],
    [{ touh: false }, 'get: "touh" is not an option', get],
    [null as never, 'get: expected an object of options, got null', get],
    [{ grace: '1m', graze: 1 }, 'regenerate: "graze" is not an option', ({ visit }, each) => visit.regenerate(each)],
    [{ user }, 'regenerate: "user" is not an option; a login is logIn(session, { user })', renew],
    [{ grace: '121s' }, 'grace: expected at most \'2m\', got "121s"', renew],
    [{ grace: 60 }, "grace: expected a duration with its unit, such as '500ms'", renew],
    [{ except: 7 }, 'except: expected a session or its key', invalidate],
    [{ minpasswordversion: 3 }, 'invalidateUser: "minpasswordversion" is not an option', invalidate],
    [{ user, dat: {} }, 'create: "dat" is not an option (there are: ', ({ sessions }, each) => sessions.create(each)],
    [{ user, passwordVersion: 3 }, VERSION, logIn],
    [{ user, verifiedAtt: 3 }, 'logIn: "verifiedAtt" is not an option', ({ visit }, each) => visit.logIn(each)],
    [{ user, remember: true }, TOKEN, logIn],
  ])('%j: %s', async (options, message, call) => {
    const { sessions } = setUp()
    const session = await sessions.create({ user })
    const calling = async () => call({ sessions, session, visit: openWith(sessions, session) }, options)
    await expect(calling()).rejects.toThrow(TypeError)
    await expect(calling()).rejects.toThrow(message)
    expect((await sessions.get(session))?.user?.name).toBe('ada')
  })
})

it('Date.now is looked up at each call, so that a fake clock installed later is seen', async () => {
  const sessions = new SessionManager({ store: new MemoryStore() })
  const real = Date.now
  onTestFinished(() => {
    Date.now = real
  })
  Date.now = () => 7
  expect((await sessions.create()).createdAt).toBe(7)
})

describe('sessions.options', () => {
  it('are the options as they count, in ms, with the clock and the data of a new session', () => {
    const given = {
      store: new MemoryStore(),
      userIds: 'string',
      initial: () => ({ cart: [] as string[] }),
      now: () => 7,
    } as const
    const { options } = new SessionManager({ ...given, absoluteTimeout: '2h' })
    expect(options).toMatchObject({ userIds: 'string', idleTimeout: 30 * 60_000, absoluteTimeout: 2 * 3_600_000 })
    expect([options.now(), options.initial()]).toEqual([7, { cart: [] }])
  })

  it('tell events of a namespace with its name', async () => {
    const events: object[] = []
    const sessions = new SessionManager({ store: new MemoryStore(), onEvent: event => events.push(event) })
    const { key } = await sessions.create()
    sessions.namespace('acme').options.onEvent({ type: 'device-bound', key, userId: 42n })
    expect(events.at(-1)).toEqual({ type: 'device-bound', key, userId: 42n, namespace: 'acme' })
  })
})
