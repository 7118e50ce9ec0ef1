// The client goes away before the handler asks for its session: what is known of the request by then, and what begins.
import { EventEmitter, once } from 'node:events'
import { type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import http2, { type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listening, portOf } from '../support/listening.ts'

const ada = { user: { id: 42n, name: 'ada' } }
type Handler = (request: IncomingMessage, response: ServerResponse) => unknown
interface Client {
  /** Sends a request, whose client goes away when `leave` is called. */
  go(headers: Record<string, string>): { leave(): void }
}

async function overHttp1(handler: Handler): Promise<Client> {
  const { port, close } = await listening(handler)
  onTestFinished(close)
  return {
    go: headers => {
      const going = send({ port, host: '127.0.0.1', headers, agent: false }).on('error', () => {})
      going.end()
      return { leave: () => going.destroy() }
    },
  }
}

async function overHttp2(handler: Handler): Promise<Client> {
  const server = http2.createServer(handler as unknown as (q: Http2ServerRequest, r: Http2ServerResponse) => void)
  const client = http2.connect(`http://localhost:${await portOf(server)}`).on('error', () => {})
  onTestFinished(() => void server.close())
  onTestFinished(() => void client.destroy())
  return {
    go: headers => {
      const { host, ...others } = headers
      const going = client
        .request({ ':path': '/', ...others, ...(host && { ':authority': host }) })
        .on('error', () => {})
      return { leave: () => going.close(http2.constants.NGHTTP2_CANCEL) }
    },
  }
}

describe.each([
  ['HTTP/1', overHttp1],
  ['HTTP/2', overHttp2],
])('a client of %s that has gone', (_, over) => {
  async function served() {
    const events: string[] = []
    const sessions = new SessionManager({
      store: new MemoryStore(),
      sweepInterval: false,
      onEvent: event => events.push(event.type === 'request-refused' ? event.reason : event.type),
    })
    const visits = nodeVisits(sessions, { trustedProxies: ['127.0.0.1', '::1', '::ffff:127.0.0.1'] })
    const heard = new EventEmitter()
    const client = await over((request, response) => {
      response.on('close', () => heard.emit('gone', visits.of(request, response)))
      heard.emit('arrived')
    })
    const goAway = async (headers: Record<string, string>): Promise<ReturnType<typeof visits.of>> => {
      const going = client.go(headers)
      const gone = once(heard, 'gone')
      await once(heard, 'arrived')
      going.leave()
      return (await gone)[0]
    }
    return { sessions, events, goAway }
  }

  it.each([
    ['on this machine', {}],
    [
      'behind a trusted proxy',
      { host: 'shop.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9' },
    ],
  ])('%s has come with its session all the same: no plain HTTP is told', async (__, headers) => {
    const { sessions, events, goAway } = await served()
    const { secret, key } = await sessions.create(ada)
    const visit = await goAway({ ...headers, cookie: `session_id=${secret}` })
    expect((await visit.requireUser()).key).toBe(key)
    expect(events).toEqual(['created'])
  })

  it('gets nothing that a login would begin', async () => {
    const { sessions, events, goAway } = await served()
    const visit = await goAway({})
    await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect([events, await sessions.count()]).toEqual([[], 0])
  })
})
