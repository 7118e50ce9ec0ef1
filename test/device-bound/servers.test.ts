// Bound sessions over node:http, HTTP/2 and Express, and where visits, a manager and the option are of different copies of the package.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer } from 'node:http2'
import { SessionManager } from 'coatcheck'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import { describe, expect, it, vi } from 'vitest'
import { DeviceClient, REFRESH } from '../support/device-client.ts'
import { pageOf, send, served, walkOver } from '../support/device-wire.ts'
import { portOf } from '../support/listening.ts'

describe('nodeVisits', () => {
  const bound = () => deviceBound(nodeVisits(new SessionManager({ store: new MemoryStore() })), { lifetime: '1m' })

  it('registers, refreshes and logs out over node:http', async () => {
    const visits = bound()
    const server = async (request: IncomingMessage, response: ServerResponse) => {
      if (await visits.handled(request, response)) return
      response.end(await pageOf(visits.of(request, response), request.url!))
    }
    await walkOver(await served(server))
  })

  it('offers a binding and answers its paths over node:http2', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const visits = deviceBound(nodeVisits(sessions, { isSecure: () => true }))
    const server = createServer(async (request, response) => {
      if (await visits.handled(request, response)) return
      response.end(await pageOf(visits.of(request, response), request.url))
    })
    const client = connect(`http://127.0.0.1:${await portOf(server)}`)
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const [answered] = await once(
        client
          .request({ ':method': 'POST', ':path': path, ...headers })
          .end()
          .resume(),
        'response',
      )
      return answered
    }
    const login = await ask('/login')
    expect(login['secure-session-registration']).toContain('path="/device-session/register"')
    const [cookie] = login['set-cookie'][0].split(';')
    expect((await ask('/device-session/register', { cookie }))[':status']).toBe(400)
    client.destroy()
    server.close()
  })

  it('registers, refreshes and logs out over Express, below a path', async () => {
    const visits = bound()
    const app = express()
    app.use('/device-session', async (request, response, next) => {
      if (!(await visits.handled(request, response))) next()
    })
    app.use(async (request, response) => {
      response.end(await pageOf(visits.of(request, response), request.url))
    })
    await walkOver(await served(app))
  })

  it('answers at its paths with a query too, and leaves a response alone that has begun already', async () => {
    const visits = bound()
    const origin = await served(async (request, response) => {
      if (request.url!.endsWith('begun')) response.writeHead(200).flushHeaders()
      const isHandled = await visits.handled(request, response)
      if (!response.writableEnded) response.end(`handled: ${isHandled}`)
    })
    const answered = async (path: string) => (await send(origin + path, 'POST', {})).text()
    expect(await answered(`${REFRESH}?from=menu`)).toBe('{"error":"no_session_id"}')
    expect(await answered(`/page?${REFRESH}`)).toBe('handled: false')
    expect(await answered(`${REFRESH}?begun`)).toBe('handled: true')
  })

  it('refuses a request without its response, at any path', async () => {
    const visits = bound()
    const origin = await served(async (request, response) => {
      response.end(String(await visits.handled(request, undefined as never).catch((error: Error) => error)))
    })
    for (const path of [REFRESH, '/page'])
      expect(await (await send(origin + path, 'POST', {})).text()).toMatch(
        /^TypeError: handled: expected a response of node:http, got null; pass what node:http gave/,
      )
  })

  it('is the same visit if it is asked for again, and has what nodeVisits has', async () => {
    const visits = bound()
    const origin = await served((request, response) => {
      const visit = visits.of(request, response)
      response.end(String(visits.of(request) === visit))
    })
    expect(await (await send(origin, 'GET', {})).text()).toBe('true')
    expect([visits.sessions, visits.cookie]).toEqual([expect.any(SessionManager), {}])
    for (const wrong of [undefined, null, {}, visits.sessions])
      expect(() => deviceBound(wrong as never)).toThrow(/^deviceBound: expected nodeVisits\(sessions\) or fetchVisits/)
  })
})

describe('two copies of the package', () => {
  it('bind and check the sessions of each other', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    vi.resetModules()
    const { deviceBound: otherBound, deviceState: otherState } = await import('coatcheck/device-bound')
    const { fetchVisits: otherVisits } = await import('coatcheck/fetch')
    expect(otherBound).not.toBe(deviceBound)
    for (const visits of [deviceBound(otherVisits(sessions)), otherBound(fetchVisits(sessions))]) {
      const browser = await new DeviceClient(visits).bind()
      const visit = visits.of(browser.request('/'))
      expect([await otherState(visit), await deviceState(visit)]).toEqual(['bound', 'bound'])
      expect(deviceOf((await visit.get())!)).not.toBeNull()
    }
  })
})
