// The same over node:http, and where an edge, a manager and the option are of different copies of the package.
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openVisit, SessionManager } from 'coatcheck'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { httpEdge } from 'coatcheck/http'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { BOUND_COOKIE, boundEdge, challengeIn, DeviceClient, REFRESH, REGISTER } from '../support/device-client.ts'
import { newDevice, refreshProof, registrationProof } from '../support/device-key.ts'

const ADA = { id: 42n, name: 'ada' }
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function served(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler as never)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** As a browser sends it: Node's fetch would add Sec-Fetch-Mode. */
function send(url: string, method: string, headers: Record<string, string>): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = ask(url, { method, headers }, response => {
      const parts: Buffer[] = []
      response.on('data', part => parts.push(part))
      response.on('end', () => {
        const given = new Headers()
        for (let at = 0; at < response.rawHeaders.length; at += 2)
          given.append(response.rawHeaders[at]!, response.rawHeaders[at + 1]!)
        resolve(new Response(Buffer.concat(parts), { status: response.statusCode!, headers: given }))
      })
    })
    request.on('error', reject)
    request.end()
  })
}

const cookiesOf = (response: Response) => response.headers.getSetCookie().map(line => line.split(';', 1)[0]!)

describe('httpEdge', () => {
  it.each(['node:http', 'Express, below a path'])('registers, refreshes and logs out over %s', async kind => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const edge = httpEdge(sessions, { deviceBound: deviceBound({ lifetime: '1m' }) })
    const pages = async (request: any, response: any) => {
      const visit = edge(request, response)
      if (request.url === '/login') await visit.logIn({ user: ADA })
      if (request.url === '/logout') await visit.logOut()
      response.end(JSON.stringify({ name: (await visit.get())?.user?.name ?? null, state: await deviceState(visit) }))
    }
    const app = express()
    app.use('/device-session', async (request, response, next) => {
      if (!(await edge.handled(request, response))) next()
    })
    app.use((request, response) => void pages(request, response))
    const plain = async (request: any, response: any) => {
      if (!(await edge.handled(request, response))) await pages(request, response)
    }
    const origin = await served((kind === 'node:http' ? plain : app) as never)
    const device = newDevice()
    const logIn = await send(`${origin}/login`, 'POST', {})
    const [session] = cookiesOf(logIn)
    const registered = await send(origin + REGISTER, 'POST', {
      cookie: session!,
      'secure-session-response': `"${registrationProof(device, challengeIn(logIn)!)}"`,
    })
    expect(registered.status).toBe(200)
    const [bound] = cookiesOf(registered)
    const cookie = `${session}; ${bound}`
    const page = await send(`${origin}/`, 'GET', { cookie })
    expect(await page.json()).toEqual({ name: 'ada', state: 'bound' })
    const { session_identifier: name } = (await registered.json()) as { session_identifier: string }
    const refresh = (headers: object) =>
      send(origin + REFRESH, 'POST', { cookie: session!, 'sec-secure-session-id': name, ...headers })
    const asked = await refresh({})
    expect(asked.status).toBe(403)
    const renewed = await refresh({ 'secure-session-response': refreshProof(device, challengeIn(asked)!) })
    expect([renewed.status, cookiesOf(renewed).length]).toEqual([200, 1])
    // Neither path is for anything else than POST, and neither is a page of the application.
    expect(await (await send(origin + REFRESH, 'GET', { cookie })).json()).toMatchObject({ name: 'ada' })
    const out = await send(`${origin}/logout`, 'POST', { cookie })
    expect(cookiesOf(out).sort()).toEqual([`${BOUND_COOKIE}=`, 'session_id='])
    expect(await (await refresh({})).json()).toEqual({ continue: false })
  })

  it('answers nothing where it binds no session', async () => {
    const edge = httpEdge(new SessionManager({ store: new MemoryStore() }))
    const origin = await served(async (request, response) => {
      response.end(String(await edge.handled(request, response)))
    })
    expect(await (await send(origin + REFRESH, 'POST', {})).text()).toBe('false')
    expect(() => httpEdge(new SessionManager({ store: new MemoryStore() }), { deviceBound: {} as never })).toThrow(
      /deviceBound: expected deviceBound\(\{ … \}\) of 'coatcheck\/device-bound', got/,
    )
  })
})

describe('openVisit', () => {
  it('offers and checks as the edges do, which answer the two paths', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const options = { deviceBound: deviceBound() }
    const browser = new DeviceClient(boundEdge(sessions))
    const visitOf = () =>
      openVisit(
        sessions,
        { method: 'GET', cookie: browser.request('/').headers.get('cookie'), secure: true, header: () => null },
        options,
      )
    const visit = visitOf()
    await visit.logIn({ user: ADA })
    for (const { name, value } of visit.cookies) browser.jar.set(name, value)
    browser.challenge = challengeIn(new Response(null, { headers: visit.headers }))
    expect((await browser.register()).status).toBe(200)
    expect(deviceOf((await visitOf().get())!)?.algorithm).toBe('ES256')
  })
})

describe('two copies of the package', () => {
  it('bind and check the sessions of each other', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    vi.resetModules()
    const { deviceBound: otherBound, deviceState: otherState } = await import('coatcheck/device-bound')
    const { fetchEdge: otherEdge } = await import('coatcheck/fetch')
    expect(otherBound).not.toBe(deviceBound)
    for (const edge of [
      otherEdge(sessions, { deviceBound: deviceBound() }),
      otherEdge(sessions, { deviceBound: otherBound() }),
    ]) {
      const browser = new DeviceClient(edge)
      await browser.logIn(ADA)
      expect((await browser.register()).status).toBe(200)
      const visit = edge(browser.request('/'))
      expect([await otherState(visit), await deviceState(visit)]).toEqual(['bound', 'bound'])
      expect(deviceOf((await visit.get())!)).not.toBeNull()
      browser.jar.set(BOUND_COOKIE, 'wrong')
    }
  })

  it('keeps the sessions of tenants apart', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const acme = new DeviceClient(boundEdge(sessions.namespace('acme')))
    const other = new DeviceClient(boundEdge(sessions.namespace('other')), acme.device)
    await acme.logIn(ADA)
    other.jar = new Map(acme.jar)
    expect((await other.register(acme.challenge!)).status).toBe(401)
    expect((await acme.register()).status).toBe(200)
    expect(await acme.user()).toBe('ada')
  })
})
