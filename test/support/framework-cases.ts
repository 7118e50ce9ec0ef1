// What frameworks do to a request and its response before a visit is asked: heads sent early, bodies read already.
import { createServer, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it, onTestFinished } from 'vitest'

const user = { id: 42n, name: 'ada' }
/** What comes to `/`. */
export const JSON_BODY = {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: '{"username":"ada"}',
}

/** Until the test ends; answers its address. */
export async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise(resolve => server.close(() => resolve())))
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`
}

type Pair = Parameters<RequestListener>
/** Serves a handler in a framework that has read the body with its own parser; answers its address. */
export type Serve = (handler: (...pair: Pair) => Promise<unknown>) => Promise<string>

export function askFramework(serve: Serve): void {
  function setUp() {
    const sessions = new SessionManager({ store: new MemoryStore() })
    onTestFinished(() => sessions.close())
    return { sessions, visits: nodeVisits(sessions) }
  }

  it('begins no session once its head was sent early', async () => {
    const { sessions, visits } = setUp()
    const url = await serve(async (request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders()
      const login = visits.of(request, response).logIn({ user })
      response.end(
        await login.then(
          () => 'logged in',
          error => error.code,
        ),
      )
    })
    const answer = await fetch(url, JSON_BODY)
    expect([await answer.text(), answer.headers.getSetCookie()]).toEqual(['ERR_SESSION_HEADERS_SENT', []])
    expect(await sessions.list(user.id)).toEqual([])
  })

  it('logs in where the body was read, and is read again', async () => {
    const { sessions, visits } = setUp()
    const url = await serve(async (request, response) => {
      const again = await text(request).catch(error => error.code)
      await visits.of(request, response).logIn({ user })
      response.end(again)
    })
    const answer = await fetch(url, JSON_BODY)
    expect(await answer.text()).not.toContain('ada')
    expect(answer.headers.getSetCookie()).toHaveLength(1)
    expect(await sessions.list(user.id)).toHaveLength(1)
  })
}
