// What a visit does for a session that another service keeps for the browser.
import { openVisit } from 'coatcheck/custom-server'
import { deviceBound } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { type AnyVisit, ada, jar, type Manager, makeSessions } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

const kinds: Record<string, (sessions: Manager, cookie: string) => AnyVisit> = {
  openVisit: (sessions, cookie) => openVisit(sessions, { method: 'POST', secure: true, cookie, header: onlyHost }),
  'deviceBound(fetchVisits)': (sessions, cookie) =>
    deviceBound(fetchVisits(sessions)).of(new Request('https://a.example/', { method: 'POST', headers: { cookie } })),
}

describe.each(Object.entries(kinds))('onLeave of %s', (_, open) => {
  async function world(cookies = '') {
    const made = makeSessions({ rememberFor: '30d' })
    const left: string[] = []
    const visit = open(made.sessions, cookies)
    visit.onLeave(() => left.push('first'))
    visit.onLeave(async () => left.push('second'))
    const fail = () =>
      visit.onLeave(async () => {
        throw new Error('the other service is away')
      })
    return { ...made, visit, left, fail }
  }

  it('runs at a login and at a logout, each time, in order, and at nothing else', async () => {
    const { visit, left } = await world()
    await visit.update({ n: 1 })
    await visit.create()
    await visit.regenerate()
    expect(left).toEqual([])
    await visit.logIn({ ...ada, remember: true })
    expect(left).toEqual(['first', 'second'])
    await visit.logOut()
    expect(left).toEqual(['first', 'second', 'first', 'second'])
  })

  it('fails the login if it fails: no session is left, and no cookie is sent', async () => {
    const { visit, fail, sessions } = await world()
    fail()
    for (const remember of [false, true]) {
      await expect(visit.logIn({ ...ada, remember })).rejects.toThrow('the other service is away')
      expect([await sessions.list(42n), await visit.get(), visit.finish().cookies]).toEqual([[], null, []])
    }
  })

  it('fails the logout if it fails: no cookie is cleared, and the logout may be repeated', async () => {
    const before = await world()
    await before.visit.logIn({ ...ada, remember: true })
    const visit = open(before.sessions, jar(before.visit.finish().headers.getSetCookie()))
    let isAway = true
    visit.onLeave(() => {
      if (isAway) throw new Error('the other service is away')
    })
    await expect(visit.logOut()).rejects.toThrow('the other service is away')
    expect(visit.finish().cookies).toEqual([])
    isAway = false
    await visit.logOut()
    const cleared = visit.finish().cookies.filter(({ value }) => value === '')
    expect(cleared.map(({ name }) => name)).toEqual(expect.arrayContaining(['session_id', 'remember_token']))
  })
})
