// Sessions that a real browser binds to its device: Chromium 150 registers, proves itself and is logged out, by itself.
import type { IncomingMessage } from 'node:http'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { createApp } from '../../examples/server/app.mjs'
import { openUsers } from '../../examples/server/users.mjs'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'
import { BOUND_COOKIE } from '../support/device-client.ts'
import { CHEAP, PASSWORD } from '../support/example-service.ts'
import { type Listening, listening } from '../support/listening.ts'
import { openBrowser, profileFolder } from '../support/services/chromium.ts'
import { DEVICE_ARGUMENTS, executablePath } from '../support/services/device-chromium.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'

describeEngine('chromium 150', 'a session in Chromium 150', () => {
  let profile: Awaited<ReturnType<typeof profileFolder>>
  let browser: BrowserContext
  let page: Page
  let made: ReturnType<typeof barrierManagers>
  let server: Listening
  let url: string
  /** How far the server's clock is ahead. */
  let later = 0
  /** What browsers asked to register and to refresh, in order. */
  const posts: IncomingMessage[] = []

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
    posts.length = 0
    made = barrierManagers(new MemoryStore(), { now: () => Date.now() + later })
    const visits = deviceBound(nodeVisits(made.sessions), { lifetime: '3s' })
    server = await listening(async (request, response) => {
      if (request.url?.startsWith('/device-session/')) posts.push(request)
      if (await visits.handled(request, response)) return
      const visit = visits.of(request, response)
      response.setHeader('Content-Type', 'text/html')
      const show = (html: string) => response.end(`<link rel="icon" href="data:,">${html}`)
      // Another site: the same server by another name.
      if (request.url === '/elsewhere') return void show(`<a href="${url}">there</a>`)
      try {
        if (request.url === '/login') await visit.logIn({ user: { id: 42, name: 'ada' } })
        if (request.url === '/logout') await visit.logOut()
        const session = await visit.get()
        const about = session?.user ? `${session.user.name}, ${deviceOf(session) ? 'bound' : 'unbound'}` : 'no one'
        show(`<p>${about}, ${await deviceState(visit)}</p>`)
      } catch {
        response.statusCode = 503
        show('<p>down</p>')
      }
    })
    url = `http://localhost:${server.port}/`
  })
  afterEach(async () => {
    await browser.clearCookies()
    await server.close()
  })

  const visitPage = async () => {
    await page.goto(url)
    return page.textContent('p')
  }
  const fetchInPage = (path: string): Promise<string> =>
    page.evaluate(`fetch('${path}', { method: 'POST' }).then(response => response.text())`)
  const boundCookie = async () => (await browser.cookies(url)).find(({ name }) => name === BOUND_COOKIE)
  /** As when its time is over, for which the first test waits. */
  const endCookie = async () => {
    const devTools = await browser.newCDPSession(page)
    await devTools.send('Network.deleteCookies', { name: BOUND_COOKIE, url })
    await devTools.detach()
  }
  const refreshes = () => posts.filter(({ url: path }) => path === '/device-session/refresh')

  async function logIn() {
    await visitPage()
    await fetchInPage('/login')
    // Not the one of the login any more: from its first request on each needs one.
    await until('the bound cookie', async () =>
      expect((await boundCookie())?.expires).toBeLessThan(Date.now() / 1000 + 60),
    )
    expect(await visitPage()).toBe('ada, bound, bound')
  }
  /** Its value has ended: what it asks for waits until it has proved itself, by so many requests. */
  async function isProvedBy(least: number, most: number, ask: () => Promise<unknown> = visitPage) {
    await endCookie()
    const before = refreshes().length
    expect(await ask()).toContain('ada, bound, bound')
    expect(refreshes().length - before).toBeGreaterThanOrEqual(least)
    expect(refreshes().length - before).toBeLessThanOrEqual(most)
  }

  it('is bound at the login, and proved again by itself when the bound cookie has ended: of fifty requests by one', async () => {
    await logIn()
    expect(made.events.map(({ type }) => type)).toContain('device-bound')
    expect(await boundCookie()).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' })
    await until('the bound cookie has ended', async () => expect(await boundCookie()).toBeUndefined())
    await isProvedBy(1, 3)
    const fifty = `Promise.all(Array.from({ length: 50 }, () => fetch('/', { method: 'POST' }).then(each => each.text())))`
    await isProvedBy(1, 9, async () => [...new Set((await page.evaluate(fifty)) as string[])].join())
    // Chromium sends neither Origin nor Sec-Fetch-Site, and no quotation marks.
    for (const { method, headers } of [posts[0]!, refreshes()[0]!]) {
      expect([method, headers.origin, headers['sec-fetch-site']]).toEqual(['POST', undefined, undefined])
      expect(headers['secure-session-response']).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
      expect(headers.cookie).toMatch(/session_id=[\w-]{43}/)
    }
    expect(posts[0]!.headers['sec-secure-session-id']).toBeUndefined()
    expect(refreshes()[0]!.headers['sec-secure-session-id']).toMatch(/^[\w-]+$/)
  })

  it('is of no use to who copies its cookies, once the bound one has ended; the browser goes on', async () => {
    await logIn()
    const cookie = (await browser.cookies(url)).map(({ name, value }) => `${name}=${value}`).join('; ')
    const asThief = async () => (await fetch(url, { headers: { cookie } })).text()
    expect(await asThief()).toContain('ada, bound, bound')
    later += 5 * 60_000 + 3000
    expect(await asThief()).toContain('no one, unproved')
    // Its challenge has ended too: the server names the next one.
    later += 60_000
    await isProvedBy(2, 4)
    expect(await asThief()).toContain('no one, unproved')
  })

  it('survives an outage of the store, and a link of another site, after which its page is loaded once more', async () => {
    await logIn()
    await endCookie()
    made.store.every('read', faults.rejects)
    expect(await visitPage()).toBe('down')
    made.store.every('read', null)
    expect(await visitPage()).toBe('ada, bound, bound')
    await endCookie()
    await page.goto(`http://127.0.0.1:${new URL(url).port}/elsewhere`)
    await page.click('a')
    await page.getByText('ada, bound, bound').waitFor()
  })

  it('is over in the browser too when it was ended elsewhere, or by a logout, and the next login binds anew', async () => {
    await logIn()
    await made.sessions.invalidateUser(42n)
    await endCookie()
    const before = refreshes().length
    for (let look = 0; look < 2; look += 1) expect(await visitPage()).toBe('no one, none')
    expect(refreshes().length, 'there is nothing left to refresh').toBe(before + 1)
    await logIn()
    await fetchInPage('/logout')
    expect(await boundCookie()).toBeUndefined()
    expect(await visitPage()).toBe('no one, none')
    await logIn()
    await isProvedBy(1, 3)
  })

  it("is shown on the example's page, with the time of its binding", async () => {
    const app = await listening(createApp({ sessions: made.sessions as any, users: await openUsers(CHEAP) }))
    onTestFinished(() => void app.close())
    await page.goto(`http://localhost:${app.port}`)
    await page.getByLabel('Name').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByText(/^Bound to this device/).waitFor()
    expect(await page.locator('time[data-time=boundAt]').getAttribute('datetime')).toMatch(/^20/)
  })
})
