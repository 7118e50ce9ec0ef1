import { SessionError, SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Hono } from 'hono'
import Koa from 'koa'
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
          () => sessions.rotate(session, { grace: '1m' }),
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
          new RegExp(`^${verb}: (the store failed|the store answered nonsense \\((object|string)\\))$`),
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

  it('is what Hono sends without an error handler', async () => {
    const app = new Hono()
      .get('/refusal', () => {
        throw refusal
      })
      .get('/outage', () => {
        throw outage
      })
    const answers = [await app.request('/refusal'), await app.request('/outage')]
    expect(answers.map(({ status }) => status)).toEqual([401, 503])
    expect(await answers[0]!.json()).toEqual({ error: 'ERR_SESSION_UNAUTHENTICATED', message: 'log in first' })
    expect(await answers[1]!.text()).not.toContain('hunter2')
  })

  it('is what Koa sends: the message of a refusal, of an outage the status alone', async () => {
    const app = new Koa({ env: 'test' })
    app.silent = true
    app.use(ctx => {
      throw ctx.path === '/refusal' ? refusal : outage
    })
    const server = app.listen(0, '127.0.0.1')
    try {
      await new Promise(resolve => server.once('listening', resolve))
      const { port } = server.address() as { port: number }
      const answer = async (path: string) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`)
        return [response.status, await response.text()]
      }
      expect(await answer('/refusal')).toEqual([401, 'log in first'])
      expect(await answer('/outage')).toEqual([503, 'Service Unavailable'])
    } finally {
      server.close()
    }
  })
})
