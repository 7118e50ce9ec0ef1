// How our headers are merged with those that a response has.
import { type FetchVisit, fetchVisits } from 'coatcheck/fetch'
import { expect, it } from 'vitest'
import { ada, type Data, makeSessions } from '../support/edge-service.ts'

const OURS = /^session_id=[\w-]{43}; Max-Age=1800; /
type Visit = FetchVisit<Data, 'bigint', Data>

/** The headers of a response; those given are its own. */
async function sent(own: [name: string, value: string][], ask: (visit: Visit) => unknown = visit => visit.logIn(ada)) {
  const visits = fetchVisits(makeSessions({ rememberFor: '30d' }).sessions)
  const headers = { cookie: `session_id=${'a'.repeat(43)}` }
  const visit = visits.of(new Request('https://app.example.com/', { method: 'POST', headers }))
  await ask(visit)
  return visit.respond(new Response('x', { headers: own })).headers
}

it.each([
  'no-store',
  'NO-STORE',
  'private, no-store',
  'private,no-store',
  'no-store,max-age=0',
  'private, no-store , max-age=0',
])('a Cache-Control that forbids to keep the response stays: %s', async value => {
  expect((await sent([['Cache-Control', value]])).get('cache-control')).toBe(value)
})

it.each(['public, max-age=60', 'x-no-store', 'no-store-x, private', 'private="no-store"', 'no-store=1'])(
  'a Cache-Control that does not becomes no-store: %s',
  async value => {
    expect((await sent([['Cache-Control', value]])).get('cache-control')).toBe('no-store')
  },
)

it.each([
  ['*', '*'],
  ['COOKIE', 'COOKIE'],
  ['Accept,Cookie', 'Accept,Cookie'],
  [' accept ,  cookie , origin', 'accept ,  cookie , origin'],
  ['Accept', 'Accept, Cookie'],
  ['X-Cookie', 'X-Cookie, Cookie'],
  [' ', 'Cookie'],
])('a Vary of "%s" becomes "%s"', async (before, after) => {
  expect((await sent([['Vary', before]])).get('vary')).toBe(after)
})

it.each([
  ['session_id=theirs', false],
  ['session_id=theirs; Path=/admin', false],
  [' session_id = theirs', false],
  ['session_id', false],
  ['session_idx=1', true],
  ['Session_ID=1', true],
  ['theme=session_id=1', true],
  ['=session_id', true],
  ['remember_token=theirs', true],
])(
  'a cookie of the application beside ours, which the browser would keep in its place or not: "%s"',
  async (theirs, stays) => {
    const cookies = (await sent([['Set-Cookie', theirs]])).getSetCookie()
    expect(cookies).toEqual([...(stays ? [theirs.trim()] : []), expect.stringMatching(OURS)])
  },
)

it('a cookie of the application under a name of ours gives way to what the response brings, and stays where it brings none', async () => {
  const lines = await sent(
    ['session_id=theirs', 'remember_token=theirs', 'theme=dark'].map(line => ['Set-Cookie', line]),
    visit => visit.logIn({ ...ada, remember: true }),
  )
  expect(lines.getSetCookie().map(line => line.split('=', 1)[0])).toEqual(['theme', 'session_id', 'remember_token'])
  expect(lines.getSetCookie().join()).not.toContain('theirs')
  const looking = await sent([['Set-Cookie', 'session_id=theirs']], visit => visit.get())
  expect(looking.getSetCookie()).toEqual(['session_id=theirs'])
})

it('a response that goes through its visit twice has each header once', async () => {
  const visits = fetchVisits(makeSessions().sessions)
  const visit = visits.of(new Request('https://app.example.com/', { method: 'POST' }))
  await visit.logIn(ada)
  const once = visit.respond(new Response('x', { headers: { Vary: 'Accept' } }))
  const twice = visit.respond(once)
  expect([...twice.headers]).toEqual([...once.headers])
  expect([twice.headers.get('vary'), twice.headers.getSetCookie().length]).toEqual(['Accept, Cookie', 1])
})
