// A response whose end waits until its session is saved: what is called on it meanwhile, and what it is like afterwards.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expressSession } from 'coatcheck/express-session'
import { nodeVisits } from 'coatcheck/node'
import compression from 'compression'
import compression17 from 'compression-1.7'
import express from 'express'
import { describe, expect, it, vi } from 'vitest'
import { called, controlled, listen, makeManager, type OldRequest, serve } from './service.ts'

const change = (request: OldRequest) => {
  request.session.n = 1
}
const codeOf = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (error) {
    return (error as { code?: unknown }).code
  }
}
/** What changes the headers of a response. */
const CHANGES: ((response: ServerResponse) => unknown)[] = [
  response => response.setHeader('X-First', '2'),
  response => response.setHeaders(new Map([['X-Second', '2']])),
  response => response.appendHeader('X-Second', '3'),
  response => response.removeHeader('X-Kept'),
  response => response.writeHead(500),
]
const SENT = CHANGES.map(() => 'ERR_HTTP_HEADERS_SENT')

describe('what is called on a response after its end, while its session is saved,', () => {
  it('changes nothing, and throws where Node does', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        response.statusMessage = 'Fine'
        response.setHeader('X-First', '1').setHeader('X-Kept', '1')
        seen.push(response.end('hello') === response, response.headersSent)
        seen.push(...CHANGES.map(each => codeOf(() => each(response))))
        response.statusCode = 500
        response.statusMessage = 'Wrong'
        seen.push(response.write('more'), response.flushHeaders() ?? null, response.end('again') === response)
      },
    })
    const { status, headers, body } = await browser().go('/')
    expect([status, body, headers['x-first'], headers['x-kept'], headers['x-second']]).toEqual([
      200,
      'hello',
      '1',
      '1',
      undefined,
    ])
    expect(seen).toEqual([true, true, ...SENT, false, null, true])
  })

  it('is a second answer of Express: its handler gets the error that it gets without a session', async () => {
    const { sessions } = makeManager()
    const app = express()
    const errors: unknown[] = []
    app.use(expressSession(sessions))
    app.get('/', (request, response) => {
      change(request as unknown as OldRequest)
      response.send('first')
      response.send('second')
    })
    const tell: import('express').ErrorRequestHandler = (error, _request, response, _next) => {
      errors.push([error.code, response.headersSent])
    }
    app.use(tell)
    const { browser } = await listen(app)
    const reply = await browser().go('/')
    expect([reply.body, reply.cookies.length]).toEqual(['first', 1])
    expect(errors).toEqual([['ERR_HTTP_HEADERS_SENT', true]])
  })

  it('goes past methods that middleware put on the response, which are there again afterwards', async () => {
    const { sessions } = makeManager()
    const session = expressSession(sessions)
    const seen: unknown[] = []
    const { browser } = await listen((request, response) => {
      const own = function setHeader(this: ServerResponse, ...values: [string, string]) {
        seen.push(values[0])
        return Object.getPrototypeOf(response).setHeader.apply(response, values)
      }
      response.setHeader = own as never
      session(request, response, () => {
        change(request as OldRequest)
        response.end('hello')
        expect(() => response.setHeader('X-Late', '1')).toThrow('after they are sent')
        response.on('finish', () => {
          seen.push(response.setHeader === (own as never), Object.hasOwn(response, 'appendHeader'))
        })
      })
    })
    const visitor = browser()
    const { body, headers } = await visitor.go('/')
    expect([body, headers['x-late']]).toEqual(['hello', undefined])
    expect(seen.slice(-2)).toEqual([true, false])
    expect(seen).not.toContain('X-Late')
  })

  it('changes nothing over HTTP/2 either, which has no status message: no warning tells of one', async () => {
    const { sessions } = makeManager()
    const session = expressSession(sessions, { isSecure: () => true })
    const server = createServer((request, response) => {
      session(request as never, response as never, () => {
        change(request as never)
        response.end('hello')
        response.statusCode = 500
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      const stream = client.request({ ':path': '/' })
      const [headers] = await once(stream, 'response')
      expect([headers[':status'], headers['set-cookie']?.length]).toEqual([200, 1])
      expect(await text(stream)).toBe('hello')
      // Others of this thread may warn meanwhile, of what coatcheck has to say.
      expect(warn.mock.calls.filter(([, options]) => (options as any)?.type !== 'CoatcheckWarning')).toEqual([])
    } finally {
      warn.mockRestore()
      client.destroy()
      server.close()
    }
  })

  it('is heard once: the listeners of its end, and the callback', async () => {
    const heard: string[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        for (const name of ['finish', 'drain']) response.on(name, () => heard.push(name))
        change(request)
        response.end('hello', () => heard.push('ended'))
      },
    })
    expect((await browser().go('/')).body).toBe('hello')
    expect(heard.sort()).toEqual(['ended', 'finish'])
  })
})

describe('a head that is given before the end', () => {
  it('waits with it: the session still begins, and for the application the head is out', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        seen.push(response.headersSent, response.writeHead(201, 'Made', { 'X-First': '1' }) === response)
        seen.push(response.headersSent, ...CHANGES.map(each => codeOf(() => each(response))))
        response.end('hello')
        response.on('finish', () => seen.push(response.headersSent, Object.hasOwn(response, 'headersSent')))
      },
    })
    const { status, headers, cookies, body } = await browser().go('/')
    expect([status, headers['x-first'], cookies.length, body]).toEqual([201, '1', 1, 'hello'])
    expect(seen).toEqual([false, true, true, ...SENT, true, false])
  })

  it('is not sent if the save fails: the error handler answers', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        '/': (request, response) => {
          change(request)
          control.failing.add('create')
          response.writeHead(201, { 'Content-Type': 'text/csv' }).end('a,b')
        },
      },
      { manager: { store } },
    )
    const { status, body, headers } = await browser().go('/')
    expect([status, body, headers['content-type']]).toEqual([503, 'ERR_SESSION_STORE', undefined])
  })

  it('goes out with what is written: that response streams, and cannot begin a session', async () => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        change(request)
        response.writeHead(201, { 'X-First': '1' })
        response.write('he')
        expect([response.headersSent, Object.hasOwn(response, 'headersSent')]).toEqual([true, false])
        response.end('llo')
      },
    })
    const { status, headers, cookies, body } = await browser().go('/')
    expect([status, headers['x-first'], cookies, body]).toEqual([201, '1', [], 'hello'])
    expect(errors).toMatchObject([{ code: 'ERR_SESSION_HEADERS_SENT' }])
  })

  it('brings the cookies of other visits as well', async () => {
    const bridge = expressSession(makeManager().sessions)
    const other = nodeVisits(makeManager().sessions, { cookie: { name: 'other' } })
    for (const when of ['before', 'after']) {
      const { browser } = await listen(async (request, response) => {
        const login = () => other.of(request, response).logIn({ user: { id: 42n, name: 'ada' } })
        if (when === 'before') await login()
        bridge(request, response, async () => {
          if (when === 'after') await login()
          change(request as OldRequest)
          response.writeHead(200).end('hello')
        })
      })
      const { cookies } = await browser().go('/')
      expect(cookies.map(cookie => cookie.split('=', 1)[0]).sort(), when).toEqual(['other', 'session_id'])
    }
  })
})

/** What a handler gives that Node refuses when it is sent. */
const REFUSED: Record<string, (response: ServerResponse) => unknown> = {
  'a header value': response => response.writeHead(302, { Location: '\u0100' }).end(),
  'a status': response => {
    response.statusCode = 1000
    response.end('x')
  },
  'a chunk at the end': response => response.end(42 as never),
}

describe('an answer that Node refuses when it is sent', () => {
  it.each(Object.keys(REFUSED))('because of %s goes to the error handler, and not out of a promise', async name => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        change(request)
        REFUSED[name]!(response)
      },
      '/n': (request, response) => response.end(String(request.session.n)),
    })
    const visitor = browser()
    expect((await visitor.go('/')).status).toBe(500)
    expect(errors).toMatchObject([{ code: expect.stringMatching(/^ERR_(?:INVALID|HTTP)_/) }])
    expect((await visitor.go('/n')).body, 'the session was saved before').toBe('1')
  })
})

describe('an answer beside compression', () => {
  // Until 1.7 it saw by `_header` whether the head is out.
  const packages = { 'compression 1.8': compression, 'compression 1.7': compression17 }

  describe.each(Object.entries(packages))('of %s', (_, made) => {
    async function answered(place: 'before' | 'after', fails: boolean, saves = false) {
      const { store, control } = controlled()
      const { sessions } = makeManager({ store })
      if (fails) control.failing.add('create')
      const errors: unknown[] = []
      const app = express()
      const compress = made({ threshold: 0 })
      if (place === 'before') app.use(compress)
      app.use(expressSession(sessions))
      if (place === 'after') app.use(compress)
      app.use(async (request, response) => {
        change(request as unknown as OldRequest)
        if (saves) await called(back => (request as unknown as OldRequest).session.save(back))
        response.setHeader('Content-Type', 'text/plain')
        response.end('hello')
      })
      const tell: express.ErrorRequestHandler = (error, _request, response, _next) => {
        errors.push(error)
        if (!response.headersSent) response.status(503).end('unavailable')
      }
      app.use(tell)
      const { port } = await listen(app)
      const reply = await fetch(`http://localhost:${port}/`, { signal: AbortSignal.timeout(10_000) })
      const { status, headers } = reply
      return {
        status,
        encoding: headers.get('content-encoding'),
        cookies: headers.getSetCookie().length,
        body: await reply.text(),
        errors,
      }
    }

    it('comes whole, with the cookie', async () => {
      const whole = { status: 200, encoding: 'gzip', cookies: 1, body: 'hello', errors: [] }
      expect(await answered('before', false)).toEqual(whole)
      expect(await answered('after', false, true)).toEqual(whole)
    })

    it('that could not be saved never mixes with the answer of the error handler', async () => {
      const { status, body, errors } = await answered('before', true)
      expect([status, body, errors]).toMatchObject([503, 'unavailable', [{ code: 'ERR_SESSION_STORE' }]])
    })

    it('that was put after the session streams: it begins no session that was not saved before, and tells so', async () => {
      const { status, cookies, body, errors } = await answered('after', false)
      expect([status, cookies, body]).toEqual([200, 0, 'hello'])
      expect(errors).toMatchObject([{ code: 'ERR_SESSION_HEADERS_SENT' }])
    })
  })
})

describe('the headers of a response', () => {
  it('are its own if the application does not look at the session', async () => {
    const cached = { 'Cache-Control': 'private, max-age=60' }
    const { browser, session } = await serve({
      '/login': (request, response) => {
        change(request)
        response.end()
      },
      '/file': (_, response) => response.writeHead(200, cached).end('a file'),
      '/page': (request, response) => response.writeHead(200, cached).end(String(request.session.n)),
      '/id': (request, response) => response.writeHead(200, cached).end(request.sessionID),
      '/visit': async (request, response) => {
        await session.visits.of(request, response).get()
        response.writeHead(200, cached).end()
      },
    })
    const visitor = browser()
    await visitor.go('/login')
    const headersOf = async (who: typeof visitor, path: string) => {
      const { headers, cookies } = await who.go(path)
      return [headers['cache-control'], headers.vary, cookies]
    }
    expect(await headersOf(visitor, '/file')).toEqual(['private, max-age=60', undefined, []])
    expect(await headersOf(browser(), '/file')).toEqual(['private, max-age=60', undefined, []])
    for (const path of ['/page', '/id', '/visit'])
      expect(await headersOf(visitor, path), path).toEqual(['no-store', 'Cookie', []])
    expect(await headersOf(browser(), '/page')).toEqual(['private, max-age=60', 'Cookie', []])
  })

  it('tell a visitor who has nothing of no cookie that goes', async () => {
    const ways: Record<string, (request: OldRequest) => unknown> = {
      '/destroy': request => called(back => request.session.destroy(back)),
      '/null': request => {
        request.session = null
      },
      '/regenerate': request => called(back => request.session.regenerate(back)),
    }
    const { browser } = await serve(
      Object.fromEntries(
        Object.entries(ways).map(([path, way]) => [
          path,
          async (request, response) => {
            await way(request)
            response.end('hello')
          },
        ]),
      ),
    )
    for (const path of Object.keys(ways)) {
      const visitor = browser()
      visitor.cookies.set('theme', 'dark')
      const { cookies, headers, body } = await visitor.go(path)
      expect([cookies, headers['cache-control'], body], path).toEqual([[], undefined, 'hello'])
      visitor.cookies.set('session_id', 'A'.repeat(43))
      expect((await visitor.go(path)).cookies, path).toEqual([expect.stringContaining('session_id=; Max-Age=0')])
    }
  })
})

describe('the answer of an error handler', () => {
  it('has none of the headers that speak of the body that was not sent, and all others', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        '/': (request, response) => {
          change(request)
          const ofTheBody = {
            'Content-Type': 'text/csv',
            'Content-Language': 'de',
            ETag: '"1"',
            'Last-Modified': new Date().toUTCString(),
            Expires: new Date().toUTCString(),
            Location: '/there',
            'Accept-Ranges': 'bytes',
          }
          const others = { 'X-Content-Note': '1', 'ETag-Of': '1', 'X-Frame-Options': 'DENY' }
          for (const [name, value] of Object.entries({ ...ofTheBody, ...others })) response.setHeader(name, value)
          control.failing.add('create')
          response.statusCode = 201
          response.end('a,b')
        },
      },
      { manager: { store } },
    )
    const { status, headers, body } = await browser().go('/')
    expect([status, body]).toEqual([503, 'ERR_SESSION_STORE'])
    const names = Object.keys(headers).filter(name => !['date', 'connection', 'keep-alive', 'vary'].includes(name))
    expect(names.sort()).toEqual(['content-length', 'etag-of', 'x-content-note', 'x-frame-options'])
    expect(headers['content-length']).toBe(String(body.length))
  })
})
