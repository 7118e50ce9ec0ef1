// A stream of Hono, and what Hono and Koa send of an error of ours.
import { SessionError, SessionManager, SessionStoreError } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'

describe('Hono', () => {
  it('begins no session in a stream, once the response is on its way', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const fetching = fetchVisits(sessions)
    const request = () => new Request('https://shop.example/', { method: 'POST' })
    const app = new Hono<{ Bindings: { visit: ReturnType<typeof fetching.of> } }>()
    app.post('/', c => {
      const { visit } = c.env
      const body = new ReadableStream(
        {
          async pull(controller) {
            const said = await visit.logIn({ user: { id: 42n, name: 'ada' } }).then(
              () => 'logged in',
              error => error.code,
            )
            controller.enqueue(new TextEncoder().encode(said))
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
      return new Response(body)
    })
    const answer = await fetching.handle(request(), visit => app.fetch(request(), { visit }))
    expect(answer.headers.getSetCookie()).toEqual([])
    expect(await answer.text()).toBe('ERR_SESSION_HEADERS_SENT')
    expect(await sessions.list(42n)).toEqual([])
  })
})

describe('an error of ours', () => {
  const refusal = new SessionError('ERR_SESSION_UNAUTHENTICATED', 'log in first')
  const outage = new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause: new Error('hunter2') })

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
