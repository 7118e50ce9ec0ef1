// Requests under way while their session ends, or goes to another user; asked in each framework, and on each kind of store.
import type { SessionManager } from 'coatcheck'
import { expect, it } from 'vitest'
import type { startApp } from './apps.ts'

type Service = Awaited<ReturnType<typeof startApp>> & { readonly sessions: SessionManager<any, any> }
let users = 8_000_000

export function lateRequests(open: () => Promise<Service>): void {
  /** A browser that is logged in, and a request of its own that waits at a gate. */
  async function underWay(path: string) {
    const service = await open()
    users += 2
    const user = String(users)
    const one = service.browser()
    await one.go(`/login?user=${user}`)
    const gate = `late ${user}`
    const late = one.copy()
    const answer = late.go(`${path}${path.includes('?') ? '&' : '?'}gate=${gate}`)
    await service.gates.arrived(gate)
    const goOn = () => {
      service.gates.open(gate)
      return answer
    }
    const copies = [late, one, one.copy()]
    const seen = async () => {
      const found: unknown[] = []
      for (const each of copies) found.push((await each.copy().go('/read')).body?.user)
      return found
    }
    return { ...service, user, id: BigInt(user), other: String(users + 1), one, goOn, seen }
  }

  it.each(['logout', 'invalidateUser', 'another request’s new ID'])(
    'a request that takes a new ID late, after %s, does not log its user in again: ERR_SESSION_UNAUTHENTICATED',
    async end => {
      const { sessions, id, one, goOn, seen } = await underWay('/new-id')
      if (end === 'logout') await one.go('/logout')
      else if (end === 'invalidateUser') await sessions.invalidateUser(id)
      else expect((await one.go('/new-id')).status).toBe(200)
      const before = (await sessions.list(id)).length
      expect((await goOn()).status).toBe(401)
      expect(await sessions.list(id)).toHaveLength(before)
      if (before === 0) expect(await seen()).toEqual([undefined, undefined, undefined])
    },
  )

  it('a request that takes a new ID, and another one, stays logged in as long as its session lived', async () => {
    const { sessions, id, one, goOn } = await underWay('/new-id')
    expect((await goOn()).status).toBe(200)
    expect(await sessions.list(id)).toHaveLength(1)
    await one.go(`/login?user=${id}`)
    expect((await one.go('/new-id-twice')).body).toBe(String(id))
    expect((await one.go('/read')).body.user).toBe(String(id))
    expect(await sessions.list(id)).toHaveLength(2)
  })

  it('a login as somebody else goes on, whoever was logged out meanwhile', async () => {
    const { sessions, id, other, goOn } = await underWay(`/new-id?as=${users + 3}`)
    await sessions.invalidateUser(id)
    expect((await goOn()).status).toBe(200)
    expect(await sessions.list(BigInt(other))).toHaveLength(1)
  })

  it('what a user writes late is not in the session of the next one, who logged in without a new ID', async () => {
    const { sessions, id, other, one, goOn } = await underWay('/write?key=cart&value=secret')
    await one.go(`/login-in-place?user=${other}`)
    await goOn()
    const { body } = await one.go('/read')
    expect([body.user, body.cart]).toEqual([other, undefined])
    expect(await sessions.invalidateUser(id)).toBe(0)
    expect((await one.go('/read')).body.user).toBe(other)
  })
}
