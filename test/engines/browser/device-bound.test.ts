// Sessions that a real browser binds to its device: Chromium 150 registers, proves itself and is logged out, by itself.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type SessionEvent, SessionManager } from 'coatcheck'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { nodeVisits } from 'coatcheck/node'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createApp } from '../../../examples/server/app.mjs'
import { openUsers } from '../../../examples/server/users.mjs'
import { CHEAP, PASSWORD } from '../../support/example-service.ts'
import { openBrowser, profileFolder } from '../../support/services/chromium.ts'
import { DEVICE_ARGUMENTS, executablePath } from '../../support/services/device-chromium.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import { until } from '../../support/services/process.ts'
import { openSqlite, sqliteFile } from '../../support/services/sqlite.ts'

const BOUND = '__Host-session_bound'

describeEngine('chromium 150', 'a session in Chromium 150', () => {
  let profile: Awaited<ReturnType<typeof profileFolder>>
  let browser: BrowserContext
  let page: Page
  let file: ReturnType<typeof sqliteFile>
  let service: Awaited<ReturnType<typeof startService>>
  let url: string
  /** How far the server's clock is ahead. */
  let later = 0
  let isDown = false
  const events: SessionEvent<'bigint'>[] = []
  /** What browsers asked to register and to refresh, in order. */
  const posts: IncomingMessage[] = []

  /** With what a process would have after its start: the database is all that stays. */
  async function startService(port = 0) {
    const database = openSqlite('libsql', file.file)
    const store = new SqliteStore(database)
    await store.migrate()
    const sessions = new SessionManager({
      store: new Proxy(store, {
        get: (target, name) => {
          const verb = Reflect.get(target, name)
          if (typeof verb !== 'function') return verb
          if (isDown && (name === 'read' || name === 'update')) return () => Promise.reject(new Error('down'))
          return verb.bind(target)
        },
      }),
      now: () => Date.now() + later,
      onEvent: event => events.push(event),
    })
    const visits = deviceBound(nodeVisits(sessions), { lifetime: '3s' })
    const server: Server = createServer(async (request, response) => {
      if (request.url?.startsWith('/device-session/')) posts.push(request)
      if (await visits.handled(request, response)) return
      const visit = visits.of(request, response)
      response.setHeader('Content-Type', 'text/html')
      // Another site: the same server by another name.
      if (request.url === '/elsewhere') {
        const { port: here } = server.address() as AddressInfo
        response.end(`<link rel="icon" href="data:,"><a href="http://localhost:${here}/">there</a>`)
        return
      }
      try {
        if (request.url === '/login') await visit.logIn({ user: { id: 42, name: 'ada' } })
        if (request.url === '/logout') await visit.logOut()
        const session = await visit.get()
        const about = session?.user ? `${session.user.name}, ${deviceOf(session) ? 'bound' : 'unbound'}` : 'no one'
        response.end(`<link rel="icon" href="data:,"><p>${about}, ${await deviceState(visit)}</p>`)
      } catch {
        response.statusCode = 503
        response.end('<link rel="icon" href="data:,"><p>down</p>')
      }
    }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const stop = async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await sessions.close()
      database.close()
    }
    return { server, sessions, stop }
  }

  beforeAll(async () => {
    profile = await profileFolder()
    browser = await openBrowser(profile.path, { executablePath, args: DEVICE_ARGUMENTS })
    browser.setDefaultTimeout(20_000)
    page = await browser.newPage()
  })
  afterAll(async () => {
    await browser?.close()
    await profile?.remove()
  })
  beforeEach(async () => {
    later = 0
    isDown = false
    events.length = 0
    posts.length = 0
    file = sqliteFile()
    service = await startService()
    url = `http://localhost:${(service.server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    await browser.clearCookies()
    await service.stop()
    file.remove()
  })

  const visitPage = async (path = '/') => {
    await page.goto(url + path)
    return page.textContent('p')
  }
  const fetchInPage = (path: string): Promise<string> =>
    page.evaluate(`fetch('${path}', { method: 'POST' }).then(response => response.text())`)
  const boundCookie = async () => (await browser.cookies(url)).find(({ name }) => name === BOUND)
  const happened = (type: string) => until(type, () => expect(events.map(event => event.type)).toContain(type))
  const cookieEnded = () => until('the bound cookie has ended', async () => expect(await boundCookie()).toBeUndefined())
  const refreshes = () => posts.filter(({ url: path }) => path === '/device-session/refresh')

  async function logIn() {
    await visitPage()
    await fetchInPage('/login')
    await happened('device-bound')
    // Not the one of the login any more: from its first request on each needs one.
    await until('the bound cookie', async () =>
      expect((await boundCookie())?.expires).toBeLessThan(Date.now() / 1000 + 60),
    )
    expect(await visitPage()).toBe('ada, bound, bound')
  }

  it('is bound at the login, and proved again by itself when the bound cookie has ended', async () => {
    await logIn()
    expect(await boundCookie()).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' })
    for (let round = 0; round < 2; round += 1) {
      await cookieEnded()
      const before = refreshes().length
      expect(await visitPage()).toBe('ada, bound, bound')
      expect(refreshes().length).toBeGreaterThan(before)
    }
  })

  it('is bound by requests as Chromium sends them: without Origin and Sec-Fetch-Site, and without quotation marks', async () => {
    await logIn()
    await cookieEnded()
    await visitPage()
    const [register, refresh] = [posts[0]!, refreshes()[0]!]
    for (const { method, headers } of [register, refresh]) {
      expect(method).toBe('POST')
      expect(headers['secure-session-response']).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
      expect(headers.cookie).toMatch(/session_id=[\w-]{43}/)
      expect(headers.origin).toBeUndefined()
      expect(headers['sec-fetch-site']).toBeUndefined()
    }
    expect(register.headers['sec-secure-session-id']).toBeUndefined()
    expect(refresh.headers['sec-secure-session-id']).toMatch(/^[\w-]+$/)
  })

  it('is one for fifty requests at once: they wait for one proof', async () => {
    await logIn()
    await cookieEnded()
    const before = refreshes().length
    const answers: string[] = await page.evaluate(
      `Promise.all(Array.from({ length: 50 }, () => fetch('/', { method: 'POST' }).then(response => response.text())))`,
    )
    for (const answer of answers) expect(answer).toContain('ada, bound, bound')
    expect(refreshes().length - before).toBeLessThan(10)
  })

  it('is of no use to who copies its cookies, once the bound one has ended; the browser goes on', async () => {
    await logIn()
    await visitPage()
    const cookie = (await browser.cookies(url)).map(({ name, value }) => `${name}=${value}`).join('; ')
    const asThief = async () => (await fetch(url, { headers: { cookie } })).text()
    expect(await asThief()).toContain('ada, bound, bound')
    later += 5 * 60_000 + 3000
    expect(await asThief()).toContain('no one, unproved')
    await cookieEnded()
    expect(await visitPage()).toBe('ada, bound, bound')
    expect(await asThief()).toContain('no one, unproved')
  })

  it('survives a restart of the server', async () => {
    await logIn()
    const { port } = new URL(url)
    await service.stop()
    service = await startService(Number(port))
    await cookieEnded()
    const before = refreshes().length
    expect(await visitPage()).toBe('ada, bound, bound')
    expect(refreshes().length).toBeGreaterThan(before)
  })

  it('survives an outage of the store: the browser asks again', async () => {
    await logIn()
    await cookieEnded()
    isDown = true
    expect(await visitPage()).toBe('down')
    isDown = false
    expect(await visitPage()).toBe('ada, bound, bound')
  })

  it('survives the loss of its challenge: the server names it again', async () => {
    await logIn()
    await cookieEnded()
    // The challenge that the browser was told has ended; the session itself has not.
    later += 6 * 60_000
    const before = refreshes().length
    expect(await visitPage()).toBe('ada, bound, bound')
    expect(refreshes().length).toBeGreaterThan(before + 1)
  })

  it('is there for who follows a link of another site: the page is loaded once more', async () => {
    await logIn()
    await cookieEnded()
    await page.goto(`http://127.0.0.1:${new URL(url).port}/elsewhere`)
    await page.click('a')
    await page.getByText('ada, bound, bound').waitFor()
  })

  it('is over in the browser too when it was ended elsewhere: continue is false', async () => {
    await logIn()
    await service.sessions.invalidateUser(42)
    await cookieEnded()
    const before = refreshes().length
    expect(await visitPage()).toBe('no one, none')
    expect(refreshes().length).toBe(before + 1)
    // There is nothing left to refresh.
    expect(await visitPage()).toBe('no one, none')
    expect(refreshes().length).toBe(before + 1)
  })

  it("is shown on the example's page, with the time of its binding", async () => {
    const app = createServer(createApp({ sessions: service.sessions as any, users: await openUsers(CHEAP) }))
    await once(app.listen(0, '127.0.0.1'), 'listening')
    try {
      await page.goto(`http://localhost:${(app.address() as AddressInfo).port}`)
      await page.getByLabel('Name').fill('ada')
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await page.keyboard.press('Enter')
      await page.getByText(/^Bound to this device/).waitFor()
      expect(await page.locator('time[data-time=boundAt]').getAttribute('datetime')).toMatch(/^20/)
    } finally {
      app.closeAllConnections()
      app.close()
    }
  })

  it('is over after a logout, and the next login binds anew', async () => {
    await logIn()
    await fetchInPage('/logout')
    expect(await boundCookie()).toBeUndefined()
    expect(await visitPage()).toBe('no one, none')
    events.length = 0
    await logIn()
    await cookieEnded()
    expect(await visitPage()).toBe('ada, bound, bound')
  })
})
