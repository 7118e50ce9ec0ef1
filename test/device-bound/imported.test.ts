// A session that comes from another library may be bound, and has to be, from when it began here.
import { deviceBound, deviceOf } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { expect, it } from 'vitest'
import { DeviceClient } from '../support/device-client.ts'
import { BEGIN, HOUR, MINUTE, OLD, withAda } from '../support/old-sessions.ts'

async function imported(options = {}) {
  const { one, clock } = withAda({ loginAt: BEGIN - 2 * HOUR })
  const visits = deviceBound(fetchVisits(one.sessions), options)
  const browser = new DeviceClient(visits as never)
  /** A page view with the old cookie, and with what the browser got beside it. */
  const view = async () => {
    const request = browser.request('/')
    const cookie = [OLD, request.headers.get('cookie')].filter(Boolean).join('; ')
    const open = (header: string) => visits.of(new Request(request, { headers: { cookie: header } }))
    const { visit } = await one.importer.import(cookie, open, visits)
    const session = await visit.get()
    const response = browser.take(visit.respond(new Response()))
    return { session, isOffered: response.headers.has('secure-session-registration') }
  }
  return { clock, browser, view }
}

it('an imported session is offered a binding by the response that brings it, and keeps it', async () => {
  const { clock, browser, view } = await imported()
  const first = await view()
  expect(first).toMatchObject({ isOffered: true, session: { user: { name: 'ada' }, createdAt: BEGIN - 2 * HOUR } })
  expect(await view()).toMatchObject({ isOffered: false, session: { key: first.session!.key } })
  expect((await browser.register()).status).toBe(200)
  clock.now += MINUTE
  const { session } = await view()
  expect([session?.user?.name, deviceOf(session!)]).toEqual(['ada', { boundAt: expect.any(Number) }])
  browser.loseValue()
  expect((await view()).session).toBeNull()
})

it('an imported session has six minutes where a binding is required, from when it began here', async () => {
  const { clock, view } = await imported({ require: true })
  const users = []
  for (const wait of [0, 6 * MINUTE - 1, 1]) {
    clock.now += wait
    users.push((await view()).session?.user?.name)
  }
  expect(users).toEqual(['ada', 'ada', undefined])
})
