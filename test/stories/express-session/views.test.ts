// What older code finds beside the data: the members of req.session and its cookie.
import { describe, expect, it } from 'vitest'
import { type OldHandler, serve } from './service.ts'

const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/set': (request, response) => {
    request.session.a = 1
    response.end()
  },
}
describe('members of req.session', () => {
  it('know their request, and say so where they are called without their session', async () => {
    const { browser, errors } = await serve({
      '/req': (request, response) => response.end(String(request.session.req === request)),
      '/lost': request => {
        const { save } = request.session
        save.call({}, () => {})
      },
    })
    expect((await browser().go('/req')).body).toBe('true')
    await browser().go('/lost')
    expect(errors).toEqual([expect.any(TypeError)])
  })

  it.each(['save', 'regenerate', 'destroy', 'reload'])('%s refuses by its name what is no callback', async verb => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        const { session } = request
        expect(session[verb](verb === 'reload' ? () => {} : null)).toBe(session)
        response.end()
      },
      '/wrong': request => request.session[verb]('callback'),
    })
    await browser().go('/')
    expect(errors.splice(0)).toEqual([])
    await browser().go('/wrong')
    expect(errors).toEqual([new TypeError(`${verb}: expected a callback, got "callback"`)])
  })

  it('are not there for objects that are merged into the session: its prototype stays', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        const { session } = request
        const before = Object.getPrototypeOf(session)
        expect(() => Object.assign(session, JSON.parse('{"__proto__":{"admin":true}}'))).toThrow(TypeError)
        const answer = [session.admin === undefined, Object.getPrototypeOf(session) === before, before.constructor.name]
        response.end(JSON.stringify(answer))
      },
    })
    expect((await browser().go('/')).body).toBe('[true,true,"Session"]')
  })
})

describe('req.session.cookie', () => {
  const shown = async (lifetime: 'idle' | 'absolute') => {
    const { browser, clock } = await serve(
      {
        ...usual,
        '/cookie': (request, response) => {
          const { cookie } = request.session
          response.end(
            JSON.stringify([cookie.originalMaxAge, cookie.maxAge, cookie.expires.getTime() - clock.now, cookie]),
          )
        },
      },
      { bridge: { cookie: { lifetime } } },
    )
    const visitor = browser()
    const before = JSON.parse((await visitor.go('/cookie')).body)
    await visitor.go('/set')
    clock.now += 60_000
    return { before, after: JSON.parse((await visitor.go('/cookie')).body) }
  }
  const [MINUTE, HALF, TWELVE] = [60_000, 1_800_000, 43_200_000]

  it('counts from the last visit where it slides, and a visitor’s as if it began now', async () => {
    const { before, after } = await shown('idle')
    expect(before.slice(0, 3)).toEqual([HALF, HALF, HALF])
    expect(after.slice(0, 3)).toEqual([HALF, HALF - MINUTE, HALF - MINUTE])
    expect(Object.keys(after[3]).sort()).toEqual(Object.keys(before[3]).sort())
    expect(after[3]).toMatchObject({ partitioned: false, secure: true, path: '/' })
  })

  it('may be assigned to the session that has it, as code does that copies a session, and no other', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        Object.assign(request.session, { cookie: request.session.cookie })
        response.end('kept')
      },
      '/other': request => Object.assign(request.session, { cookie: { ...request.session.cookie } }),
    })
    expect((await browser().go('/')).body).toBe('kept')
    expect((await browser().go('/other')).body).toContain('req.session.cookie: cannot be replaced')
  })

  it('lists what it says of the cookie, and no methods', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        const { cookie } = request.session
        response.end(JSON.stringify(Object.keys(cookie)))
      },
    })
    const names: string[] = JSON.parse((await browser().go('/')).body)
    const times = ['expires', 'httpOnly', 'maxAge', 'originalMaxAge']
    expect(names.sort()).toEqual(['domain', ...times, 'partitioned', 'path', 'sameSite', 'secure'])
  })

  it('counts from the login where it does not', async () => {
    const { before, after } = await shown('absolute')
    expect(before.slice(0, 3)).toEqual([TWELVE, TWELVE, TWELVE])
    expect(after.slice(0, 3)).toEqual([TWELVE, TWELVE - MINUTE, TWELVE - MINUTE])
  })

  it.each(['httpOnly', 'priority', 'signed', 'path'])('says of %s whether an option sets it', async name => {
    const { browser, errors } = await serve({
      '/': request => {
        request.session.cookie[name] = 'other'
      },
    })
    await browser().go('/')
    const advice =
      name === 'path'
        ? 'from an option: expressSession(sessions, { cookie: { path } })'
        : 'every session has the same cookie, and this is no option of it'
    expect(String(errors[0])).toContain(`req.session.cookie.${name}: cannot become "other"; `)
    expect(String(errors[0])).toContain(advice)
  })

  it('takes null for a time where it has none, refuses one where it has, and takes no other members', async () => {
    const tell = async (lifetime: 'browser' | 'idle', change: (cookie: any) => void) => {
      const { browser } = await serve(
        {
          '/': (request, response) => {
            change(request.session.cookie)
            response.end('kept')
          },
        },
        { bridge: { cookie: { lifetime } } },
      )
      return (await browser().go('/')).body
    }
    for (const name of ['maxAge', 'originalMaxAge', 'expires'])
      for (const none of [null, undefined, false]) {
        const change = (cookie: any) => {
          cookie[name] = none
        }
        expect(await tell('browser', change), `${name} = ${none}`).toBe('kept')
        expect(await tell('idle', change), `${name} = ${none}`).toContain(`${name}: cannot become ${none}`)
      }
    expect(await tell('browser', cookie => Object.assign(cookie, { expires: new Date() }))).toContain('cannot become')
    expect(await tell('idle', cookie => Object.assign(cookie, { sameParty: true }))).toContain(
      'sameParty: cannot become true; every session has the same cookie',
    )
  })
})
