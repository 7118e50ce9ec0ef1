// What Next does with these functions is walked through by the recipe; here stand the rules of each place.
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { nextVisits } from 'coatcheck/next'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it, vi } from 'vitest'
import { soon } from '../support/deadlines.ts'

const ada = { user: { id: 42n, name: 'ada' } }
const URL = 'http://localhost:3000/'

function setUp() {
  const store = new MemoryStore()
  const sessions = new SessionManager({ store, sweepInterval: false, rememberFor: '30d' })
  const jar = new Map<string, string>()
  // As Next has it: the same headers to all of one request.
  let given = new Headers()
  let refusal: string | null = null
  const visits = nextVisits(fetchVisits(sessions), {
    headers: async () => given,
    cookies: async () => ({
      set: (name: string, value: string) => {
        if (refusal !== null) throw new Error(refusal)
        jar.set(name, value)
      },
    }),
  })
  /** As in a component; `null` as in an action. */
  const refuse = (message: string | null) => {
    refusal = message
  }
  const request = (headers: Record<string, string> = {}) => {
    given = new Headers({ host: 'localhost:3000', ...headers })
  }
  request()
  return { store, sessions, jar, visits, request, refuse }
}
it('an action that throws, as redirect() does, has set its cookies by then', async () => {
  const { jar, visits } = setUp()
  const redirect = visits.withVisit(async visit => {
    await visit.logIn(ada)
    throw new Error('NEXT_REDIRECT')
  })
  await expect(redirect).rejects.toThrow('NEXT_REDIRECT')
  expect(jar.has('session_id')).toBe(true)
})

it('a page only reads: what would set a cookie rejects before anything is stored', async () => {
  const { sessions, jar, visits, request } = setUp()
  const visit = await visits.current()
  await expect(visit.logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
  await expect(visit.update({ n: 1 })).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
  expect([await sessions.count(), jar.size]).toEqual([0, 0])
  const session = await sessions.create(ada)
  request({ cookie: `remember_token=${await sessions.issueRememberToken(session)}` })
  expect(await (await visits.current()).get()).toBeNull()
})

it('an action may look at the session before it writes, and is guarded all the same', async () => {
  const { sessions, visits, request } = setUp()
  const { secret } = await sessions.create(ada)
  request({ cookie: `session_id=${secret}` })
  await (await visits.current()).requireUser()
  expect((await visits.withVisit(visit => visit.update({ n: 1 })))?.data).toEqual({ n: 1 })
  request({ cookie: `session_id=${secret}`, 'sec-fetch-site': 'cross-site' })
  await (await visits.current()).requireUser()
  await expect(visits.withVisit(visit => visit.logOut())).rejects.toMatchObject({ code: 'ERR_SESSION_CROSS_ORIGIN' })
  expect((await sessions.get(secret))?.user?.id).toBe(42n)
})

it('an action may look by current() between two withVisit, and sees what was written; to look closes nothing', async () => {
  const { sessions, jar, visits, request } = setUp()
  const user = async () => (await (await visits.current()).get())?.user?.name ?? null
  await visits.withVisit(async visit => {
    await visit.update({ n: 1 })
    expect((await (await visits.current()).get())?.data).toEqual({ n: 1 })
  })
  expect(await user()).toBeNull()
  await visits.withVisit(visit => visit.logIn(ada))
  expect(await user()).toBe('ada')
  request({ cookie: `session_id=${jar.get('session_id')}` })
  expect(await user()).toBe('ada')
  await expect((await visits.current()).logIn(ada)).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
  expect(await sessions.count()).toBe(1)
  await visits.withVisit(visit => visit.logOut())
  expect([await user(), jar.get('session_id'), await sessions.count()]).toEqual([null, '', 0])
})

it('in a component, where Next refuses cookies, what began ends, what was there stays, and an error of run comes first', async () => {
  const { store, sessions, visits, request, refuse } = setUp()
  refuse('Cookies can only be modified in a Server Action')
  const inComponent = (run: Parameters<typeof visits.withVisit>[0]) =>
    visits.withVisit(run).then(
      () => 'done',
      error => error.message,
    )
  expect(await inComponent(visit => visit.logIn({ ...ada, remember: true }))).toMatch(/^Cookies can only/)
  expect([
    await sessions.count(),
    await store.listUser('42', 'remember', { now: Date.now(), deadline: soon() }),
  ]).toEqual([0, []])
  request()
  expect(await inComponent(visit => visit.update({ n: 1 }))).toMatch(/^Cookies can only/)
  expect(await sessions.count()).toBe(0)
  request()
  const failing = inComponent(async visit => {
    await visit.logIn(ada)
    throw new Error('the reason')
  })
  expect([await failing, await sessions.count()]).toEqual(['the reason', 0])

  const session = await sessions.create(ada)
  request({ cookie: `session_id=${session.secret}` })
  expect(await inComponent(visit => visit.regenerate({ grace: '1m' }))).toMatch(/^Cookies can only/)
  expect((await sessions.get(session.secret))?.user?.name).toBe('ada')
  // A remembered user is in again by the same token.
  request({ cookie: `remember_token=${await sessions.issueRememberToken(session)}` })
  expect(await inComponent(visit => visit.get())).toMatch(/^Cookies can only/)
  refuse(null)
  expect(await visits.withVisit(async visit => (await visit.get())?.user?.name)).toBe('ada')
})

it('a route handler has a visit, and what Next gives it; a refusal is JSON, an outage a 503 that is logged', async () => {
  const { store, visits } = setUp()
  const post = (handler: Parameters<typeof visits.route<{ id: number }>>[0]) =>
    visits.route(handler)(new Request(URL, { method: 'POST' }), { id: 7 })
  const answer = await post(async (visit, request, { id }) => {
    await visit.logIn(ada)
    return Response.json([request.method, id])
  })
  expect(await answer.json()).toEqual(['POST', 7])
  expect(answer.headers.getSetCookie()).toHaveLength(1)

  const refused = await post(async visit => Response.json(await visit.requireUser()))
  expect([refused.status, await refused.json()]).toEqual([
    401,
    { error: 'ERR_SESSION_UNAUTHENTICATED', message: 'no user is logged in' },
  ])

  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  store.create = () => Promise.reject(new Error('down'))
  const down = await post(async visit => Response.json(await visit.logIn(ada)))
  expect([down.status, await down.json(), log.mock.calls.length]).toEqual([503, { error: 'ERR_SESSION_STORE' }, 1])
  await expect(post(() => Promise.reject(new Error('a fault')))).rejects.toThrow('a fault')
})

it('the proxy brings a remembered user back before the page, sends the cookies, and leaves all but GET alone', async () => {
  const { sessions, visits } = setUp()
  const shown: (Headers | undefined)[] = []
  const proxy = visits.proxy({
    next: init => {
      shown.push(init?.request.headers)
      return new Response('the page')
    },
  })
  const token = await sessions.issueRememberToken(await sessions.create(ada))
  const answer = await proxy(new Request(URL, { headers: { cookie: `theme=dark; remember_token=${token}` } }))
  const [cookie] = answer.headers.getSetCookie()
  expect(cookie).toMatch(/^session_id=/)
  expect(shown[0]?.get('cookie')).toContain(cookie!.split(';')[0])
  expect(shown[0]?.get('cookie')).toContain('theme=dark')
  expect((await proxy(new Request(URL, { method: 'POST' }))).headers.getSetCookie()).toEqual([])
  expect(shown[1]).toBeUndefined()
})

it('a proxy that cannot read answers 503, and the cookies stay', async () => {
  const { store, sessions, visits } = setUp()
  const { secret } = await sessions.create(ada)
  vi.spyOn(console, 'error').mockImplementation(() => {})
  store.read = () => Promise.reject(new Error('down'))
  const answer = await visits.proxy({ next: () => new Response() })(
    new Request(URL, { headers: { cookie: `session_id=${secret}` } }),
  )
  expect([answer.status, answer.headers.getSetCookie()]).toEqual([503, []])
})

it('says what to pass', () => {
  const { sessions } = setUp()
  const functions = { headers: async () => new Headers(), cookies: async () => ({ set() {} }) }
  expect(() => nextVisits(sessions as never, functions)).toThrow(
    'nextVisits: expected fetchVisits(sessions), got an object',
  )
  const visits = fetchVisits(sessions)
  for (const functions of [undefined, {}, { headers: async () => new Headers() }])
    expect(() => nextVisits(visits, functions as never)).toThrow(
      "nextVisits: expected { headers, cookies } of 'next/headers', got ",
    )
})
