import { inspect } from 'node:util'
import { SessionError, type SessionErrorCode, SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults, type Verb } from '../support/barrier-store.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const user = { id: 42, name: 'ada' }

describe('what a framework sends to a client of an error, its message,', () => {
  const details = ['connect ECONNREFUSED', '10.1.2.3', '5432', 'relation "app_sessions"', 'sessions_user', 'hunter2']
  const failure = () =>
    Object.assign(new Error(`${details.join(' ')} postgres://app:hunter2@db.internal/app`), { host: 'db.internal' })

  it.each<Verb>(['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'])(
    'says nothing of what the database said at %s; the cause does',
    async verb => {
      const store = BarrierStore.over(new MemoryStore())
      const clock = testClock()
      const errors: SessionStoreError[] = []
      const sessions = new SessionManager({
        store,
        now: clock,
        sweepInterval: false,
        onEvent: event => {
          if (event.type === 'store-error') errors.push(event.error)
        },
      })
      const session = await sessions.create({ user })
      for (const how of [() => Promise.reject(failure()), faults.throws, faults.answers({ host: 'db.internal' })]) {
        store.every(verb, how as never)
        const calls = [
          () => sessions.create({ user }),
          () => sessions.get(session.secret),
          () => sessions.update(session, { a: 1 }),
          () => sessions.regenerate(session, { grace: '1m' }),
          () => sessions.destroy(session),
          () => sessions.invalidateUser(42, { except: session }),
          () => sessions.list(42),
        ]
        clock.advance(5 * MINUTE)
        for (const call of calls) await call().catch(() => {})
      }
      store.every(verb, null)
      for (const error of errors) {
        expect(error).toBeInstanceOf(SessionStoreError)
        expect(error.message).toMatch(
          new RegExp(`^(?:${verb}: the store failed|the store returned an invalid result for \`read\` \\(object\\))$`),
        )
      }
      expect(errors.some(error => String((error.cause as Error)?.message).includes(details[0]!))).toBe(true)
    },
  )
})

describe('what frameworks look for in an error', () => {
  const refusal = new SessionError('ERR_SESSION_UNAUTHENTICATED', 'log in first')
  const outage = new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause: new Error('hunter2') })

  it('is a status under two names, and whether a client may read the message', () => {
    expect(refusal).toMatchObject({ status: 401, statusCode: 401, expose: true })
    expect(outage).toMatchObject({ status: 503, statusCode: 503, expose: false })
  })

  it('is a Response that no cache keeps; one of an outage has no message', async () => {
    const response = refusal.getResponse()
    expect(response.status).toBe(401)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toEqual({ error: 'ERR_SESSION_UNAUTHENTICATED', message: 'log in first' })
    expect(await outage.getResponse().json()).toEqual({ error: 'ERR_SESSION_STORE' })
    // Each is a body of its own.
    expect(await refusal.getResponse().text()).toBe(await refusal.getResponse().text())
  })
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

  it('says what it is by its name, which can be changed as that of any error', () => {
    for (const [error, name] of [
      [new SessionError('ERR_SESSION_LIMIT', 'full'), 'SessionError'],
      [new SessionStoreError('read', 'not-applied', 'down'), 'SessionStoreError'],
    ] as const) {
      expect(String(error)).toBe(`${name}: ${error.message}`)
      expect(Object.keys(error)).not.toContain('name')
      error.name = 'Renamed'
      expect(String(error)).toBe(`Renamed: ${error.message}`)
    }
    expect(new SessionError('ERR_SESSION_LIMIT', 'full').name).toBe('SessionError')
  })

  it('has a name as any error of the language: not listed, and free to be defined anew', () => {
    const { value: _, ...usual } = Object.getOwnPropertyDescriptor(Error.prototype, 'name')!
    for (const { prototype } of [SessionError, SessionStoreError])
      expect(Object.getOwnPropertyDescriptor(prototype, 'name')).toEqual({ value: prototype.name, ...usual })
  })

  it('is known to copies of the package of other versions by symbols that stay', () => {
    const outage = new SessionStoreError('read', 'not-applied', 'down')
    expect(Symbol.for('coatcheck.SessionError') in outage).toBe(true)
    expect(Symbol.for('coatcheck.SessionStoreError') in outage).toBe(true)
    expect(Symbol.for('coatcheck.SessionStoreError') in new SessionError('ERR_SESSION_LIMIT', 'full')).toBe(false)
  })

  it('of the store says which verb failed, whether it may have written, and what the store said', () => {
    const cause = new Error('ECONNRESET')
    expect(new SessionStoreError('update', 'unknown', 'down', { cause })).toMatchObject({
      code: 'ERR_SESSION_STORE',
      operation: 'update',
      outcome: 'unknown',
      status: 503,
      cause,
    })
  })
})

describe('what console.error prints', () => {
  it('of an outage is one line, with what the database said, since each request of it is logged', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED\n  10.1.2.3:6379'), { code: 'ECONNREFUSED' })
    const cause = new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause: refused })
    const [code, said] = ['ERR_SESSION_STORE: read: the store failed', 'connect ECONNREFUSED 10.1.2.3:6379']
    expect(inspect(cause)).toBe(`${code}; ECONNREFUSED: ${said}`)
    const again = new SessionStoreError('update', 'unknown', 'update: the store failed', { cause })
    expect(inspect(again)).toBe(`ERR_SESSION_STORE: update: the store failed; ${code}; ECONNREFUSED: ${said}`)
    expect(inspect(new SessionError('ERR_SESSION_CONFLICT', 'gave up'))).toBe('ERR_SESSION_CONFLICT: gave up')
  })

  it.each([null, 'full', Symbol('full'), Object.create(null), { text: 'a\nb' }])(
    'of an outage is one line whatever the store threw: %o',
    cause => {
      const outage = new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause })
      expect(inspect(outage)).toMatch(/^ERR_SESSION_STORE: read: the store failed; .+$/)
      const circle = Object.assign(outage, { cause: outage })
      expect(inspect(circle)).not.toContain('\n')
    },
  )

  it('of all else has the stack, as of any error', () => {
    expect(inspect(new SessionError('ERR_SESSION_DATA', 'a function'))).toMatch(/errors\.test\.ts:\d+/)
  })
})

describe('instanceof', () => {
  it('holds for what is one, and for nothing else, whatever was thrown', () => {
    const outage = new SessionStoreError('read', 'not-applied', 'down')
    const refusal = new SessionError('ERR_SESSION_LIMIT', 'full')
    expect([outage instanceof SessionError, outage instanceof SessionStoreError]).toEqual([true, true])
    expect([refusal instanceof SessionError, refusal instanceof SessionStoreError]).toEqual([true, false])
    for (const thrown of [
      null,
      undefined,
      '',
      'text',
      42,
      42n,
      true,
      Symbol('thrown'),
      () => {},
      {},
      new Error('no'),
    ]) {
      expect((thrown as object) instanceof SessionError).toBe(false)
      expect((thrown as object) instanceof SessionStoreError).toBe(false)
    }
  })

  it('of a class that extends one holds for its own alone', () => {
    class QuotaError extends SessionError {}
    class DiskError extends SessionStoreError {}
    const quota = new QuotaError('ERR_SESSION_LIMIT', 'full')
    const disk = new DiskError('create', 'not-applied', 'full')
    expect([quota instanceof QuotaError, quota instanceof SessionError]).toEqual([true, true])
    expect([disk instanceof DiskError, disk instanceof SessionStoreError, disk instanceof SessionError]).toEqual([
      true,
      true,
      true,
    ])
    expect(new SessionError('ERR_SESSION_LIMIT', 'full') instanceof QuotaError).toBe(false)
    expect(new SessionStoreError('create', 'not-applied', 'full') instanceof DiskError).toBe(false)
  })
})
