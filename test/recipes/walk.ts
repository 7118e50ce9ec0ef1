// One walk for all recipes: what a browser meets at each, step by step.
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Answer, Client, PASSWORD } from '../support/example-service.ts'
import { started } from '../support/started.ts'
import { type Dialect, rest, type Wish } from './dialects.ts'
import { problemsOf, type RunningRecipe, startRecipe } from './recipe.ts'

const MINUTE = 60_000
// Whole seconds, rounded up: a session that a token began some milliseconds ago has a little more than 1800.
const ID = /^session_id=[\w-]{43}; Max-Age=1(?:79\d|80[01]); Path=\/; HttpOnly; Secure; SameSite=Lax$/
/** What is news to the browser lives as long as the session may at most: 12 hours. */
const NEWS = /^session_id=[\w-]{43}; Max-Age=43(?:19\d|20[01]); Path=\/; HttpOnly; Secure; SameSite=Lax$/
/** Sent again after 16 minutes, with what is left of the 12 hours. */
const AGAIN = /^session_id=[\w-]{43}; Max-Age=422[34]\d; Path=\/; HttpOnly; Secure; SameSite=Lax$/
const TOKEN = /^remember_token=[^;]+; Max-Age=259(?:19\d\d|2000); Path=\/; HttpOnly; Secure; SameSite=Lax$/

/** A browser that asks in the words of the recipe. */
class Visitor extends Client {
  readonly dialect: Dialect

  constructor(url: string, dialect: Dialect) {
    super(url)
    this.dialect = dialect
  }

  async ask(wish: Wish, more: Record<string, string> = {}): Promise<Answer> {
    const { method, path, body, headers } = this.dialect.request(wish)
    // As browsers do at every form, and at a POST without a body.
    const origin = (wish.name === 'save' || wish.name === 'logout') && { Origin: this.url }
    const answer = await this.send(method, path, body, { ...origin, ...headers, ...more })
    return { ...answer, body: answer.status < 300 ? this.dialect.value(answer.body) : answer.body }
  }

  profile = (headers?: Record<string, string>) => this.ask({ name: 'profile' }, headers)
  cart = () => this.ask({ name: 'cart' })
  add = (article: unknown = 'coat', headers?: Record<string, string>) =>
    this.ask({ name: 'add', input: { article } }, headers)
  logOut = () => this.ask({ name: 'logout' })
  logIn = (remember?: boolean, username = 'ada') =>
    this.enter({ username, password: PASSWORD, ...(remember && { remember }) })
  enter = (input: { username: unknown; password: unknown; remember?: unknown }, headers?: Record<string, string>) =>
    this.ask({ name: 'login', input }, headers)

  /** The token in the form, as a browser would send it back. */
  async csrf(): Promise<string> {
    if (!this.dialect.hasForm) return ''
    const page = await this.send('GET', this.dialect.request({ name: 'save', input: { csrf: '' } }).path)
    expect(page.status).toBe(200)
    return /name="csrf" value="([\w-]+)"/.exec(page.text)![1]!
  }
}

export interface WalkOptions {
  dialect?: Dialect
  /** In place of `npm start`: another runtime. */
  command?: (preload: string, port: number) => string[]
  /** What its process is told beside PORT. */
  env?: (url: string) => Record<string, string>
  isTyped?: boolean
  /** Whether the test rules the store and the clock: not where nothing can be preloaded into the recipe. */
  isRuled?: boolean
  /** Whether the recipe is for a platform that ends TLS, so that no header changes what it takes for HTTPS. */
  isBehindGateway?: boolean
  /** Whether the framework refuses what comes without a body from another origin by itself, in words of its own. */
  refusesToo?: boolean
}

/** Describes the walk through a recipe of examples/; `more` are cases of this framework alone. */
export function walk(
  title: string,
  recipe: string,
  {
    dialect = rest,
    command,
    env,
    isTyped = command === undefined,
    isRuled = true,
    isBehindGateway = false,
    refusesToo = false,
  }: WalkOptions = {},
  more: (running: () => RunningRecipe) => void = () => {},
): void {
  // First: it takes so long that the recipe would close connections that nobody uses.
  if (isTyped)
    it(`${title} has the types that it says`, () => {
      expect(problemsOf(recipe)).toBe('')
    }, 120_000)

  describe(title, () => {
    const running = started(() => startRecipe(recipe, { ...(command && { command }), ...(env && { env }) }))
    const visitor = () => new Visitor(running().url, dialect)
    /** Who has a copy of these cookies. */
    const thief = (cookies: Record<string, string | undefined>) => {
      const one = visitor()
      for (const [name, value] of Object.entries(cookies)) one.cookies.set(name, value!)
      return one
    }

    /** Refused, in JSON, with a code and without what is for the log alone. */
    function expectRefusal(answer: Answer, status: number, code?: string) {
      expect([status, answer.status, answer.text]).toEqual([status, status, expect.any(String)])
      expect(answer.headers.get('content-type')).toMatch(/^application\/(?:[\w-]+\+)?json/)
      expect(() => JSON.parse(answer.text)).not.toThrow()
      if (code) expect(answer.text).toContain(`"${code}"`)
      expect(answer.text).not.toMatch(/db\.internal|node_modules|\.m?[jt]s:\d/)
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    const nameIn = ({ body }: Answer) => [body.name, `${body.id}`]

    it('refuses a visitor who is not logged in, and gives them no cookie', async () => {
      const anonymous = visitor()
      expectRefusal(await anonymous.profile(), 401, 'ERR_SESSION_UNAUTHENTICATED')
      const cart = await anonymous.cart()
      expect([cart.body, cart.headers.getSetCookie()]).toEqual([{ cart: {}, hint: '' }, []])
      expectRefusal(await anonymous.ask({ name: 'save', input: { csrf: 'guessed' } }), 401)
    })

    it('refuses wrong credentials, whatever their type', async () => {
      for (const input of [
        { username: 'ada', password: 'wrong' },
        { username: 'eve', password: PASSWORD },
        { username: 'ada', password: '' },
        { username: 42, password: { length: 3 } },
        { username: ['ada'], password: [PASSWORD] },
      ]) {
        const answer = await visitor().enter(input)
        // The last one only looks right once it is made text: refused, or the login of this very user.
        if (answer.status === 200) expect([input.username, ...nameIn(answer)]).toEqual([['ada'], 'ada', '42'])
        else expect([400, 401]).toContain(answer.status)
        if (answer.status !== 200) expect(answer.headers.getSetCookie()).toEqual([])
      }
    })

    it('keeps a cart from before the login, and its ID not', async () => {
      const ada = visitor()
      const added = await ada.add('hat')
      expect([added.status, added.body]).toEqual([200, { hat: 1 }])
      expect(added.headers.getSetCookie()).toEqual([expect.stringMatching(ID)])
      const before = ada.cookie
      const login = await ada.logIn()
      expect([login.status, ...nameIn(login)]).toEqual([200, 'ada', '42'])
      expect(login.text).not.toMatch(/hash|passwordVersion/)
      expect(login.headers.getSetCookie()).toEqual([expect.stringMatching(ID)])
      expect(ada.cookie).not.toBe(before)
      expect((await ada.cart()).body.cart).toEqual({ hat: 1 })
      expect(nameIn(await ada.profile())).toEqual(['ada', '42'])

      const late = visitor()
      late.cookies.set('session_id', before.split('=')[1]!)
      expect((await late.cart()).body.cart).toEqual({})
      expect((await late.profile()).status).toBe(401)
    })

    it('gives another user of the same browser nothing of the first', async () => {
      const browser = visitor()
      await browser.logIn()
      await browser.add('hat')
      const first = browser.cookies.get('session_id')
      const login = await browser.logIn(false, 'max')
      // Exact, which a number of JavaScript is not.
      for (const { text } of [login, await browser.profile()]) expect(text).toMatch(/\b18446744073709551615\b/)
      expect((await browser.cart()).body).toEqual({ cart: {}, hint: '' })
      expectRefusal(await thief({ session_id: first }).profile(), 401)
    })

    it('mixes up none of twelve browsers that come at once', async () => {
      const seen = await Promise.all(
        Array.from({ length: 12 }, async (_, number) => {
          const one = visitor()
          await one.logIn(false, number % 2 ? 'ada' : 'max')
          for (let coats = 0; coats <= number % 3; coats++) await one.add()
          return [(await one.profile()).body.name, (await one.cart()).body.cart]
        }),
      )
      expect(seen).toEqual(seen.map((_, number) => [number % 2 ? 'ada' : 'max', { coat: (number % 3) + 1 }]))
    })

    it('keeps personal answers out of every cache', async () => {
      const ada = visitor()
      const login = await ada.logIn()
      for (const { headers } of [login, await ada.profile()]) expect(headers.get('cache-control')).toBe('no-store')
      for (const { headers } of [await ada.profile(), await visitor().profile()])
        expect(headers.get('vary')).toMatch(/(?:^|, ?)cookie(?:$|,)/i)
    })

    it('gives no cookie to a HEAD, nor for an address that is not there', async () => {
      const ada = visitor()
      await ada.logIn()
      const { cookie } = ada
      const { path } = dialect.request({ name: 'profile' })
      const head = await ada.send('HEAD', path)
      expect([head.status < 500, head.text, head.headers.getSetCookie()]).toEqual([true, '', []])
      for (const client of [ada, visitor()]) {
        const missing = await client.send('GET', '/favicon.ico')
        // Nuxt without pages shows its one page at any address.
        expect([[200, 404].includes(missing.status), missing.headers.getSetCookie()]).toEqual([true, []])
      }
      expect(ada.cookie).toBe(cookie)
      expect((await ada.profile()).status).toBe(200)
    })

    it('shows a hint once, and asks for the token of its form', async () => {
      const ada = visitor()
      await ada.logIn()
      if (dialect.hasForm)
        expectRefusal(await ada.ask({ name: 'save', input: { csrf: 'guessed' } }), 403, 'ERR_SESSION_CSRF')
      expect((await ada.cart()).body.hint).toBe('')
      const saved = await ada.ask({ name: 'save', input: { csrf: await ada.csrf() } })
      if (dialect.hasForm)
        expect([saved.status, saved.headers.get('location')]).toEqual([303, dialect.request({ name: 'cart' }).path])
      else expect(saved.status).toBe(200)
      const hints = await Promise.all([ada.cart(), ada.cart(), ada.cart()])
      expect(hints.map(({ body }) => body.hint).sort()).toEqual(['', '', 'Saved.'])
    })

    it('refuses what a page of another origin sends, login and logout included', async () => {
      const ada = visitor()
      await ada.logIn()
      const evil = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
      const credentials = { username: 'ada', password: PASSWORD }
      const logout = await ada.ask({ name: 'logout' }, evil)
      if (refusesToo) expect([logout.status, logout.headers.getSetCookie()]).toEqual([403, []])
      else expectRefusal(logout, 403, 'ERR_SESSION_CROSS_ORIGIN')
      expectRefusal(await ada.add('coat', evil), 403, 'ERR_SESSION_CROSS_ORIGIN')
      expectRefusal(await visitor().enter(credentials, evil), 403, 'ERR_SESSION_CROSS_ORIGIN')
      const own = { Origin: running().url, 'Sec-Fetch-Site': 'same-origin' }
      expect((await ada.profile()).status).toBe(200)
      expect((await ada.add('coat', own)).status).toBe(200)
      expect((await ada.cart()).body.cart).toEqual({ coat: 1 })
    })

    it(`takes ${isBehindGateway ? 'a' : 'no'} login whose headers name a proxy that it was not told of`, async () => {
      const proxied = { 'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Proto': 'http' }
      const ada = visitor()
      await ada.logIn()
      const login = await visitor().enter({ username: 'ada', password: PASSWORD }, proxied)
      if (isBehindGateway) expect(login.status).toBe(200)
      else expectRefusal(login, 403, 'ERR_SESSION_INSECURE')
      expect(isBehindGateway ? [200] : [401, 403]).toContain((await ada.profile(proxied)).status)
      expect((await ada.profile()).status).toBe(200)
    })

    it('keeps ten updates that come at once', async () => {
      const ada = visitor()
      await ada.logIn()
      await Promise.all(Array.from({ length: 10 }, (_, number) => ada.add(number % 2 ? 'coat' : 'hat')))
      expect((await ada.cart()).body.cart).toEqual({ coat: 5, hat: 5 })
    })

    it('logs out for good: the cookie goes, and who kept it has nothing', async () => {
      const ada = visitor()
      await ada.logIn()
      const dead = ada.cookies.get('session_id')!
      const answer = await ada.logOut()
      expect(answer.status).toBeLessThan(300)
      expect(answer.headers.getSetCookie().join('\n')).toMatch(/^session_id=; Max-Age=0; /m)
      expect(ada.cookie).toBe('')
      expect((await visitor().logOut()).status).toBeLessThan(300)

      const late = visitor()
      late.cookies.set('session_id', dead)
      expectRefusal(await late.profile(), 401, 'ERR_SESSION_UNAUTHENTICATED')
      const cart = await late.cart()
      expect([cart.body.cart, cart.headers.getSetCookie()]).toEqual([{}, []])
      expect((await late.logIn()).status).toBe(200)
      expect(late.cookies.get('session_id')).not.toBe(dead)
    })

    it('remembers who asked for it, with a new token each time', async () => {
      const ada = visitor()
      const login = await ada.logIn(true)
      expect(login.headers.getSetCookie().sort()).toEqual([expect.stringMatching(TOKEN), expect.stringMatching(ID)])
      const token = ada.cookies.get('remember_token')
      ada.cookies.delete('session_id') // the browser was closed
      const back = await ada.profile()
      expect([back.status, ...nameIn(back)]).toEqual([200, 'ada', '42'])
      expect(back.headers.getSetCookie().sort()).toEqual([expect.stringMatching(TOKEN), expect.stringMatching(NEWS)])
      expect(ada.cookies.get('remember_token')).not.toBe(token)
      await ada.profile() // its first visit, written down and answered with the cookie
      const refused = await ada.ask({ name: 'save', input: { csrf: await ada.csrf() } })
      expectRefusal(refused, 401, 'ERR_SESSION_NOT_FRESH')
      await ada.logIn()
      expect((await ada.ask({ name: 'save', input: { csrf: await ada.csrf() } })).status).toBeLessThan(304)

      await ada.logIn(true)
      const kept = ada.cookies.get('remember_token')!
      await ada.logOut()
      const late = visitor()
      late.cookies.set('remember_token', kept)
      expectRefusal(await late.profile(), 401)
    })

    if (isRuled)
      it('asks for the password again where the login was long ago', async () => {
        const ada = visitor()
        await ada.logIn()
        const csrf = await ada.csrf()
        onTestFinished(() => running().control({}))
        running().control({ ahead: 16 * MINUTE })
        const renewed = await ada.profile()
        expect(renewed.headers.getSetCookie()).toEqual([expect.stringMatching(AGAIN)])
        expectRefusal(await ada.ask({ name: 'save', input: { csrf } }), 401, 'ERR_SESSION_NOT_FRESH')
        running().control({ ahead: 47 * MINUTE })
        expectRefusal(await ada.profile(), 401, 'ERR_SESSION_UNAUTHENTICATED')
      })

    if (isRuled)
      it('answers 503 and keeps the cookie while the store is away', async () => {
        const ada = visitor()
        await ada.logIn()
        const { cookie } = ada
        try {
          running().control({ isDown: true })
          for (const answer of [
            await ada.profile(),
            await ada.cart(),
            await ada.add('hat'),
            await ada.logOut(),
            await visitor().logIn(),
          ])
            expectRefusal(answer, 503, 'ERR_SESSION_STORE')
        } finally {
          running().control({})
        }
        expect(ada.cookie).toBe(cookie)
        expect((await ada.profile()).status).toBe(200)
        expect((await ada.cart()).body.cart).toEqual({})
      })

    if (isRuled)
      it('says nothing of what fails inside it, whatever status that has', async () => {
        try {
          for (const breaks of [{}, { status: 401, statusCode: 401 }, { status: 'fail' }, { status: 502, code: 'E' }]) {
            running().control({ breaks })
            const input = { username: 'ada', password: PASSWORD }
            const { method, path, body, headers } = dialect.request({ name: 'login', input })
            const answer = await visitor().send(method, path, body, headers)
            expect([breaks, answer.text.match(/sk-live|db\.internal|node_modules/)]).toEqual([breaks, null])
            expect([200, 500]).toContain(answer.status) // an answer of GraphQL with errors in it is a 200
            expect(answer.headers.getSetCookie()).toEqual([])
          }
        } finally {
          running().control({})
        }
        expect((await visitor().logIn()).status).toBe(200)
      })

    it('answers 400 to a body that it cannot read, and 413 to one of more than 16 KiB', async () => {
      const { method, path, headers } = dialect.request({ name: 'login', input: { username: '', password: '' } })
      const post = (body: string) =>
        visitor().send(method, path, body, { 'Content-Type': 'application/json', ...headers })
      for (const body of ['{', '{"username":"ada",']) expectRefusal(await post(body), 400)
      for (const body of ['', 'null', '[]', '5']) expect([400, 401]).toContain((await post(body)).status)
      expectRefusal(await visitor().enter({ username: 'x'.repeat(17_000), password: '' }), 413)
      // A field is shorter: recipes that look say so.
      expect([400, 401]).toContain((await visitor().enter({ username: 'x'.repeat(15_000), password: 'x' })).status)
      expect((await visitor().add('__proto__')).status).toBe(400)
      expect((await visitor().logIn()).status).toBe(200)
    })

    more(running)
  })
}
