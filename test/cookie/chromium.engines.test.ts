// What a real browser does with the cookies: every line of docs/security.md about them is tried here in Chromium.
import { createHash, X509Certificate } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { join } from 'node:path'
import { SessionManager } from 'coatcheck'
import { type NodeVisitsOptions, nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { answerError } from '../support/edge-service.ts'
import { portOf } from '../support/listening.ts'
import { openBrowser, profileFolder } from '../support/services/chromium.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'

const APP = 'app.example.test'
const SIBLING = 'evil.example.test'
/** Another site, where this browser's user allows third-party cookies. */
const OTHER = 'other.test'
/** And one where they are blocked, as is the default of Debian's Chromium, Safari and Firefox. */
const BLOCKED = 'blocked.test'
const PREFERENCES = {
  cookie_controls_mode: 1,
  content_settings: { exceptions: { cookies: { [`*,[*.]${OTHER}`]: { setting: 1 } } } },
}

describeEngine('chromium', 'cookies in Chromium', () => {
  let certificate: Certificate
  let server: Server
  let port: number
  let profile: Awaited<ReturnType<typeof profileFolder>>
  let browser: BrowserContext
  let page: Page
  let now: number
  let sessions: SessionManager
  let visits: ReturnType<typeof nodeVisits>
  /** What the server saw: `METHOD host/path` and whether our cookie was there. */
  let seen: { what: string; cookie: string; site: string | undefined }[]

  const at = (host: string, path = '/') => `https://${host}:${port}${path}`
  const originOf = (host: string) => at(host, '')
  const ada = { user: { id: 42n, name: 'ada' } }
  const eve = { user: { id: 666n, name: 'eve' } }

  function setUp(options: NodeVisitsOptions = {}, manager: { idleTimeout?: `${number}s` } = {}) {
    sessions = new SessionManager({ store: new MemoryStore(), now: () => now, sweepInterval: false, ...manager })
    visits = nodeVisits(sessions, options) as typeof visits
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const host = (request.headers.host ?? '').split(':')[0]!
    const path = request.url ?? '/'
    if (path === '/favicon.ico') {
      response.writeHead(404).end()
      return
    }
    seen.push({
      what: `${request.method} ${host}${path}`,
      cookie: request.headers.cookie ?? '',
      site: request.headers['sec-fetch-site'] as string | undefined,
    })
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    if (host === SIBLING && path === '/plant') {
      const { secret } = await sessions.create(eve)
      response.setHeader('Set-Cookie', [
        `session_id=${secret}; Domain=example.test; Path=/; Secure`,
        `__Host-session_id=${secret}; Domain=example.test; Path=/; Secure`,
        `__Host-session_id=${secret}; Path=/; Secure`,
      ])
    }
    // An identity provider posts to the application, which goes on by a redirect of its own.
    if (host === APP && path === '/receive') {
      response.writeHead(303, { Location: '/' }).end()
      return
    }
    if (host !== APP) {
      response.end(`<!doctype html><title>${host}</title>`)
      return
    }
    const { origin = '' } = request.headers
    if (origin === originOf(OTHER) || origin === originOf(BLOCKED)) {
      response.setHeader('Access-Control-Allow-Origin', origin)
      response.setHeader('Access-Control-Allow-Credentials', 'true')
      response.setHeader('Access-Control-Allow-Methods', 'PUT')
    }
    if (request.method === 'OPTIONS') {
      response.writeHead(204).end()
      return
    }
    const visit = visits.of(request, response)
    if (path === '/login') await visit.logIn(ada)
    else if (path === '/logout') await visit.logOut()
    response.end(`<!doctype html><title>app</title><p>${(await visit.get())?.user?.name ?? 'anonymous'}</p>`)
  }

  beforeAll(async () => {
    certificate = makeCertificate([APP, SIBLING, OTHER, BLOCKED])
    server = createServer({ key: certificate.key, cert: certificate.cert }, (request, response) => {
      answer(request, response).catch(error => answerError(response, error))
    })
    server.on('upgrade', (request, socket) => {
      visits
        .of(request)
        .get()
        .then(
          session => seen.push({ what: `upgrade ${session?.user?.name}`, cookie: '', site: undefined }),
          error => seen.push({ what: `upgrade ${error.code}`, cookie: '', site: undefined }),
        )
        .finally(() => socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n'))
    })
    port = await portOf(server)
    profile = await profileFolder()
    const spki = new X509Certificate(certificate.cert).publicKey.export({ type: 'spki', format: 'der' })
    await mkdir(join(profile.path, 'Default'))
    await writeFile(join(profile.path, 'Default', 'Preferences'), JSON.stringify({ profile: PREFERENCES }))
    browser = await openBrowser(profile.path, {
      args: [
        '--host-resolver-rules=MAP *.test 127.0.0.1',
        `--ignore-certificate-errors-spki-list=${createHash('sha256').update(spki).digest('base64')}`,
      ],
    })
    browser.setDefaultTimeout(20_000)
    page = await browser.newPage()
  })
  afterAll(async () => {
    await browser?.close()
    server?.close().closeAllConnections()
    await profile?.remove()
    certificate?.remove()
  })
  beforeEach(async () => {
    now = Date.now()
    seen = []
    setUp()
    await browser.clearCookies()
  })
  afterEach(async () => {
    await page.goto('about:blank')
    await sessions.close()
  })

  /** Runs in the page: the console of its author. */
  const fetchIn = (path: string, method = 'POST', host = APP) =>
    page.evaluate(
      `fetch(${JSON.stringify(at(host, path))}, { method: '${method}', credentials: 'include' }).then(r => r.text(), e => 'failed')`,
    ) as Promise<string>
  const who = async () => {
    await page.goto(at(APP))
    return page.textContent('p')
  }
  const login = async () => {
    await page.goto(at(APP))
    await fetchIn('/login')
  }
  const ours = async (name = 'session_id') => (await browser.cookies()).filter(cookie => cookie.name === name)
  const submitFrom = async (host: string, path: string, method: 'post' | 'get', leadsTo = path) => {
    await page.goto(at(host))
    seen = []
    await Promise.all([
      page.waitForURL(at(APP, leadsTo) + (method === 'get' ? '?' : '')),
      page.evaluate(
        `(() => { const f = document.createElement('form'); f.method = '${method}'; f.action = ${JSON.stringify(at(APP, path))}; document.body.append(f); f.submit() })()`,
      ),
    ])
  }
  const last = () => seen.at(-1)!

  it('the session’s cookie is there, and no script sees it', async () => {
    await login()
    expect(await who()).toBe('ada')
    expect(await ours()).toMatchObject([{ domain: APP, path: '/', httpOnly: true, secure: true, sameSite: 'Lax' }])
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(await page.evaluate('cookieStore.getAll().then(all => all.length)')).toBe(0)
    // Nor can a script put another in its place.
    await page.evaluate(`document.cookie = 'session_id=mine; path=/; secure'`)
    expect(await ours()).toHaveLength(1)
    expect(await who()).toBe('ada')
  })

  it('logout really empties the jar', async () => {
    await login()
    await fetchIn('/logout')
    expect(await browser.cookies()).toEqual([])
    expect(await who()).toBe('anonymous')
  })

  it('it is gone after Max-Age, with lifetime browser it has none', async () => {
    setUp({}, { idleTimeout: '1s' })
    await login()
    await until('the cookie expires', async () => expect(await ours()).toEqual([]))
    // The manager's clock stands still: the session lives, the browser has forgotten it.
    expect(await sessions.list(42n)).toHaveLength(1)
    expect(await who()).toBe('anonymous')
    setUp({ cookie: { lifetime: 'browser' } })
    await login()
    expect(await ours()).toMatchObject([{ expires: -1 }])
  })

  it('SameSite=Lax: a link from another site brings it, a form post does not', async () => {
    await login()
    await submitFrom(OTHER, '/link', 'get')
    expect(last()).toMatchObject({ what: `GET ${APP}/link?`, site: 'cross-site' })
    expect(last().cookie).toContain('session_id=')
    expect(await page.textContent('p')).toBe('ada')
    await submitFrom(OTHER, '/logout', 'post')
    expect(last()).toMatchObject({ what: `POST ${APP}/logout`, site: 'cross-site', cookie: '' })
    expect(await who()).toBe('ada')
  })

  it('SameSite=Lax: a sibling host’s form post brings it, and the guard refuses it', async () => {
    await login()
    await submitFrom(SIBLING, '/logout', 'post')
    expect(last()).toMatchObject({ site: 'same-site' })
    expect(last().cookie).toContain('session_id=')
    expect(await page.textContent('body')).toBe('ERR_SESSION_CROSS_ORIGIN')
    expect(await who()).toBe('ada')
  })

  it('SameSite=Lax: neither fetch nor a frame of another site brings it', async () => {
    await login()
    await page.goto(at(OTHER))
    await fetchIn('/fetched', 'GET')
    expect(last()).toMatchObject({ what: `GET ${APP}/fetched`, cookie: '' })
    expect(await inFrame('/framed')).toBe('anonymous')
    expect(last()).toMatchObject({ what: `GET ${APP}/framed`, cookie: '' })
  })

  it('SameSite=Strict: not even a link from another site brings it', async () => {
    setUp({ cookie: { sameSite: 'strict' } })
    await login()
    await submitFrom(OTHER, '/link', 'get')
    expect(last().cookie).toBe('')
    expect(await who()).toBe('ada')
  })

  it('SameSite=None: everything brings it, and the guard alone stands between', async () => {
    setUp({ cookie: { sameSite: 'none' } })
    await login()
    await submitFrom(OTHER, '/logout', 'post')
    expect(last().cookie).toContain('session_id=')
    expect(await page.textContent('body')).toBe('ERR_SESSION_CROSS_ORIGIN')
    await page.goto(at(OTHER))
    expect(await inFrame('/framed')).toBe('ada')
    await fetchIn('/fetched', 'GET')
    expect(last().cookie).toContain('session_id=')
  })

  it('SameSite=None: where the browser blocks third-party cookies, neither frame nor fetch brings it', async () => {
    setUp({ cookie: { sameSite: 'none' } })
    await login()
    await page.goto(at(BLOCKED))
    expect(await inFrame('/framed')).toBe('anonymous')
    await fetchIn('/fetched', 'GET')
    expect(last().cookie).toBe('')
  })

  it.each([OTHER, BLOCKED])('Partitioned: a page embedded in %s has a session of its own there', async host => {
    setUp({ cookie: { sameSite: 'none', partitioned: true }, trustedOrigins: [originOf(host)] })
    await login()
    await page.goto(at(host))
    expect(await inFrame('/framed')).toBe('anonymous')
    await fetchIn('/login')
    expect(await inFrame('/framed-again')).toBe('ada')
    expect(await ours()).toHaveLength(2)
    // Logout there ends that one, and the one on our own site goes on.
    await fetchIn('/logout')
    expect(await inFrame('/framed-at-last')).toBe('anonymous')
    expect(await who()).toBe('ada')
    expect(await ours()).toHaveLength(1)
  })

  it('CORS: the front end listed reads with cookies, another one does not', async () => {
    setUp({ cookie: { sameSite: 'none' }, trustedOrigins: [originOf(OTHER), originOf(BLOCKED)] })
    await page.goto(at(OTHER))
    expect(await fetchIn('/login')).toContain('ada')
    expect(await fetchIn('/profile', 'GET')).toContain('ada')
    expect(await fetchIn('/profile', 'PUT')).toContain('ada')
    expect(seen.map(({ what }) => what)).toContain(`OPTIONS ${APP}/profile`)
    await page.goto(at(SIBLING))
    expect(await fetchIn('/profile', 'GET')).toBe('failed')
    expect(await fetchIn('/logout')).toBe('failed')
    expect(await who()).toBe('ada')
  })

  it('a WebSocket of another origin is refused, though the browser sends the cookie along', async () => {
    setUp({ cookie: { sameSite: 'none' } })
    await login()
    const knock = () =>
      page.evaluate(
        `new Promise(done => { new WebSocket(${JSON.stringify(at(APP, '/socket').replace('https', 'wss'))}).onerror = () => done() })`,
      )
    await knock()
    expect(last().what).toBe('upgrade ada')
    for (const host of [OTHER, SIBLING]) {
      await page.goto(at(host))
      await knock()
      expect(last().what).toBe('upgrade ERR_SESSION_CROSS_ORIGIN')
    }
  })

  it('a cookie planted by a sibling host before the login never becomes the user’s session', async () => {
    await page.goto(at(SIBLING, '/plant'))
    expect(await ours()).toHaveLength(1)
    // Alone it looks like any other cookie: only the __Host- form keeps a visitor out of the planter's session.
    expect(await who()).toBe('eve')
    await fetchIn('/login')
    expect(await ours()).toHaveLength(2)
    // The login ended what the planted one leads to.
    expect(await who()).toBe('ada')
    expect(last().cookie.match(/session_id=/g)).toHaveLength(2)
  })

  it('a cookie planted beside a session leads to no session, never to the attacker’s', async () => {
    await login()
    await page.goto(at(SIBLING, '/plant'))
    expect(await ours()).toHaveLength(2)
    expect(await who()).toBe('anonymous')
    expect(await who()).toBe('anonymous')
  })

  it('the __Host- form cannot be planted', async () => {
    setUp({ cookie: { hostPrefix: true } })
    await page.goto(at(SIBLING, '/plant'))
    expect(await who()).toBe('anonymous')
    await login()
    await page.goto(at(SIBLING, '/plant'))
    expect(await who()).toBe('ada')
    // The sibling has one of its own, which only itself gets.
    expect((await ours('__Host-session_id')).map(({ domain }) => domain).sort()).toEqual([APP, SIBLING])
  })

  it('a form of another site brings no cookie; the redirect that answers it does', async () => {
    await login()
    await submitFrom(OTHER, '/receive', 'post', '/')
    expect(await page.textContent('p')).toBe('ada')
    const told = seen.map(({ what, cookie }) => [what, cookie.includes('session_id=')])
    expect(told).toEqual([
      [`POST ${APP}/receive`, false],
      [`GET ${APP}/`, true],
    ])
  })

  async function inFrame(path: string): Promise<string | null> {
    await page.evaluate(
      `(() => { const f = document.createElement('iframe'); f.src = ${JSON.stringify(at(APP, path))}; document.body.append(f); return new Promise(done => { f.onload = () => done() }) })()`,
    )
    const frame = page.frames().find(each => each.url() === at(APP, path))
    return frame ? frame.textContent('p') : null
  }
})
