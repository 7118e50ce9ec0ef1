// What tests of a manager begin with: one on a memory store whose calls a test can stop, and requests of browsers.
import type { SessionManager, Store } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { barrierManagers } from './barrier-managers.ts'
import { onlyHost } from './only-host.ts'

export const user = { id: 1, name: 'ada' }
export const other = { id: 2, name: 'max' }
export const grace = { grace: '1m' } as const
export const times = (count: number) => Array.from({ length: count }, (_, index) => index)

export const setUp = (options: object = {}, store: Store = new MemoryStore()) => barrierManagers(store, options)

/** A request that may begin a session, with this Cookie header. */
export const open = (sessions: SessionManager<any, any, any>, cookie: string | null = null) =>
  openVisit(sessions, { method: 'POST', secure: true, cookie, header: onlyHost })

/** The request of the browser that has this session. */
export const openWith = (sessions: SessionManager<any, any, any>, { secret }: { readonly secret: string }) =>
  open(sessions, `session_id=${secret}`)

/** The values of the cookies that an answer sets; cookies that it clears are left out. */
export const cookiesSent = (visit: { finish(): { headers: Headers } }): string[] =>
  visit
    .finish()
    .headers.getSetCookie()
    .filter(line => !line.includes('Max-Age=0'))
    .map(line => line.split(/[=;]/)[1]!)

/** Sessions of users at the limits of their IDs, of a tenant and of visitors; one remembers its device, one got a new ID. */
export async function populate(sessions: SessionManager) {
  const userOf = (id: number | bigint) => ({ user: { id, name: `user ${id}` } })
  const acme = sessions.namespace('acme')
  const first = await sessions.create(userOf(0))
  const old = await sessions.create(userOf(2n ** 64n - 1n))
  const theirs = [await acme.create(userOf(0)), await acme.create(userOf(7))] as const
  const visitors = [await sessions.create(), await acme.create({ data: { cart: [1] } })] as const
  const token = await sessions.issueRememberToken(first)
  const mine = [first, (await sessions.regenerate(old, grace))!] as const
  return { acme, mine, theirs, visitors, token, old }
}

/** A schema of the application's own, without a library. */
export const schemaOf = (validate: (value: any) => unknown): any => ({
  '~standard': { version: 1, vendor: 'mine', validate },
})
