// Without HTTPS nothing begins, and no cookie is honoured.
import { openVisit } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { ada, listen, makeSessions, visitOf } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

const ELSEWHERE = { Host: 'app.example.com' }
const INSECURE = { code: 'ERR_SESSION_INSECURE', status: 403 }

describe('without HTTPS', () => {
  it.each<[string, RegExp, (sessions: ReturnType<typeof makeSessions>['sessions']) => Promise<unknown>]>([
    [
      'nodeVisits',
      /behind a proxy that ends TLS set `trustedProxies` or `isSecure` of nodeVisits, or .*`cookie: \{ secure: false \}`/,
      async sessions => {
        const visits = nodeVisits(sessions)
        let error: unknown
        const { send } = await listen(async (request, response) => {
          error = await visits
            .of(request, response)
            .logIn(ada)
            .catch(reason => reason)
          response.end()
        })
        expect((await send('/login', { method: 'POST', headers: ELSEWHERE })).cookies).toEqual([])
        throw error
      },
    ],
    [
      'fetchVisits',
      /set `isSecure` of fetchVisits, or /,
      sessions =>
        fetchVisits(sessions)
          .of(new Request('http://app.example.com/', { method: 'POST' }))
          .logIn(ada),
    ],
    [
      'openVisit',
      /if it did, set `secure: true` in the request given to openVisit, or /,
      sessions => visitOf(sessions, null, { secure: false }).logIn(ada),
    ],
  ])('a login by %s is refused, and the refusal names what these visits have', async (name, message, logIn) => {
    const { sessions, calls } = makeSessions()
    const error: Error = await logIn(sessions).then(
      () => null,
      reason => reason,
    )
    expect(error).toMatchObject({ ...INSECURE, message: expect.stringMatching(message) })
    expect(error.message.includes('trustedProxies')).toBe(name === 'nodeVisits')
    expect(calls).toEqual([])
  })

  it('a login is refused at each try where isSecure throws, and nothing begins', async () => {
    const { sessions, calls } = makeSessions()
    const isSecure = () => {
      throw new Error('no such header')
    }
    const visit = fetchVisits(sessions, { isSecure }).of(new Request('http://app.example.com/', { method: 'POST' }))
    for (let times = 0; times < 2; times += 1) await expect(visit.logIn(ada)).rejects.toThrow('no such header')
    expect([visit.headers.getSetCookie(), calls]).toEqual([[], []])
  })

  /** A visit, and how often it asked whether its request came over HTTPS. */
  function asking(made: ReturnType<typeof makeSessions>, cookie: string | null) {
    const asked = { times: 0 }
    const visit = openVisit(made.sessions, {
      method: 'POST',
      cookie,
      header: onlyHost,
      get secure() {
        asked.times += 1
        return false
      },
    })
    asked.times = 0
    return { visit, asked }
  }

  it.each([null, '', 'theme=dark', 'my_session_id2=1'])(
    'that matters once, where a session would begin: with the cookie %j',
    async cookie => {
      const made = makeSessions()
      const { visit, asked } = asking(made, cookie)
      expect([await visit.get(), await visit.regenerate()]).toEqual([null, null])
      expect([[...visit.headers], asked.times]).toEqual([[['vary', 'Cookie']], 0])
      for (const begin of [visit.logIn(ada), visit.create(), visit.update({ n: 1 })])
        await expect(begin).rejects.toMatchObject(INSECURE)
      expect([asked.times, made.calls]).toEqual([1, []])
    },
  )

  it('that matters once, where our cookie comes', async () => {
    const made = makeSessions()
    const { secret } = await made.sessions.create()
    made.calls.length = 0
    for (const cookie of [`session_id=${secret}`, 'session_id=a; session_id=b', 'a=1; session_id=']) {
      const { visit, asked } = asking(made, cookie)
      expect([await visit.get(), visit.headers.getSetCookie(), asked.times]).toEqual([null, [], 1])
    }
    expect(made.calls).toEqual([])
  })

  it('a logout ends the session all the same: its ID was seen in the clear', async () => {
    const { sessions } = makeSessions()
    const { secret } = await sessions.create(ada)
    await visitOf(sessions, `session_id=${secret}`, { secure: false }).logOut()
    expect(await sessions.get(secret)).toBeNull()
  })
})
