// What is in the errors of the package: for handlers, frameworks, logs and other copies of the package.
import { inspect } from 'node:util'
import { SessionError, type SessionErrorCode, type SessionManager, SessionStoreError } from 'coatcheck'
import { describe, expect, it } from 'vitest'
import type { Verb } from '../support/barrier-store.ts'
import { setUp, user } from '../support/manager-kit.ts'

const outage = (cause?: unknown) => new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause })
const refusal = new SessionError('ERR_SESSION_UNAUTHENTICATED', 'log in first')

it.each<[Verb, (sessions: SessionManager, session: any) => Promise<unknown>]>([
  ['create', sessions => sessions.create({ user })],
  ['read', (sessions, { secret }) => sessions.get(secret)],
  ['update', (sessions, session) => sessions.update(session, { a: 1 })],
  ['replace', (sessions, session) => sessions.regenerate(session)],
  ['delete', (sessions, session) => sessions.destroy(session)],
  ['deleteUser', sessions => sessions.invalidateUser(1)],
  ['listUser', sessions => sessions.list(1)],
])(
  'the message of a %s that failed, which frameworks send to clients, says nothing of what the database said',
  async (verb, call) => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ user })
    const said = new Error('connect ECONNREFUSED postgres://app:hunter2@db.internal/app')
    store.next(verb, () => Promise.reject(said))
    const error = await call(sessions, session).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ message: `${verb}: the store failed`, cause: said })
  },
)

it('an error is a Response that no cache keeps; that of an outage has no message', async () => {
  const response = refusal.getResponse()
  expect(response.status).toBe(401)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.json()).toEqual({ error: 'ERR_SESSION_UNAUTHENTICATED', message: 'log in first' })
  expect(await outage(new Error('hunter2')).getResponse().json()).toEqual({ error: 'ERR_SESSION_STORE' })
  // Each is a body of its own.
  expect(await refusal.getResponse().text()).toBe(await refusal.getResponse().text())
})

describe('an error', () => {
  const statuses: Record<SessionErrorCode, number> = {
    ERR_SESSION_STORE: 503,
    ERR_SESSION_CONFLICT: 503,
    ERR_SESSION_UNAUTHENTICATED: 401,
    ERR_SESSION_STALE_LOGIN: 401,
    ERR_SESSION_NOT_FRESH: 401,
    ERR_SESSION_CROSS_ORIGIN: 403,
    ERR_SESSION_CSRF: 403,
    ERR_SESSION_INSECURE: 403,
    ERR_SESSION_LIMIT: 409,
    ERR_SESSION_DATA: 500,
    ERR_SESSION_HEADERS_SENT: 500,
    ERR_SESSION_ID_COLLISION: 500,
  }

  it.each(Object.entries(statuses) as [SessionErrorCode, number][])('of code %s has status %i', (code, status) => {
    const error = new SessionError(code, 'why')
    // What the server did wrong is not for clients to read.
    expect(error).toMatchObject({ code, status, statusCode: status, expose: status < 500, message: 'why' })
  })

  it('has a name as any error of the language: not listed, and free to be defined anew', () => {
    const { value: _, ...usual } = Object.getOwnPropertyDescriptor(Error.prototype, 'name')!
    for (const { prototype } of [SessionError, SessionStoreError])
      expect(Object.getOwnPropertyDescriptor(prototype, 'name')).toEqual({ value: prototype.name, ...usual })
  })
})

describe('what console.error prints', () => {
  it('of an outage is one line, with what the database said, since each request of it is logged', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED\n  10.1.2.3:6379'), { code: 'ECONNREFUSED' })
    const cause = outage(refused)
    const [code, said] = ['ERR_SESSION_STORE: read: the store failed', 'connect ECONNREFUSED 10.1.2.3:6379']
    expect(inspect(cause)).toBe(`${code}; ECONNREFUSED: ${said}`)
    const again = new SessionStoreError('update', 'unknown', 'update: the store failed', { cause })
    expect(inspect(again)).toBe(`ERR_SESSION_STORE: update: the store failed; ${code}; ECONNREFUSED: ${said}`)
    expect(inspect(new SessionError('ERR_SESSION_CONFLICT', 'gave up'))).toBe('ERR_SESSION_CONFLICT: gave up')
  })

  it.each([null, 'full', Symbol('full'), Object.create(null), { text: 'a\nb' }])(
    'of an outage is one line whatever the store threw: %o',
    cause => {
      const error = outage(cause)
      expect(inspect(error)).toMatch(/^ERR_SESSION_STORE: read: the store failed; .+$/)
      const circle = Object.assign(error, { cause: error })
      expect(inspect(circle)).not.toContain('\n')
    },
  )

  it('of all else has the stack, as of any error', () => {
    expect(inspect(new SessionError('ERR_SESSION_DATA', 'a function'))).toMatch(/errors\.test\.ts:\d+/)
  })
})

describe('instanceof', () => {
  it('holds for what is one, and for nothing else, whatever was thrown', () => {
    expect([outage() instanceof SessionError, outage() instanceof SessionStoreError]).toEqual([true, true])
    expect([refusal instanceof SessionError, refusal instanceof SessionStoreError]).toEqual([true, false])
    // By symbols that copies of other versions know.
    expect(Symbol.for('coatcheck.SessionError') in refusal).toBe(true)
    expect(Symbol.for('coatcheck.SessionStoreError') in outage()).toBe(true)
    for (const thrown of [null, undefined, '', 'text', 42, 42n, Symbol('thrown'), () => {}, {}, new Error('no')]) {
      expect((thrown as object) instanceof SessionError).toBe(false)
      expect((thrown as object) instanceof SessionStoreError).toBe(false)
    }
  })

  it('of a class that extends one holds for its own alone', () => {
    class QuotaError extends SessionError {}
    class DiskError extends SessionStoreError {}
    const quota = new QuotaError('ERR_SESSION_LIMIT', 'full')
    const disk = new DiskError('create', 'not-applied', 'full')
    const isOf = (error: object) =>
      [QuotaError, DiskError, SessionStoreError, SessionError].map(each => error instanceof each)
    expect(isOf(quota)).toEqual([true, false, false, true])
    expect(isOf(disk)).toEqual([false, true, true, true])
    expect(isOf(refusal)).toEqual([false, false, false, true])
    expect(isOf(outage())).toEqual([false, false, true, true])
  })
})
