import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it } from 'vitest'
import { type AnyVisit, ada, type Handler, serve } from '../support/edge-service.ts'
import { listening } from '../support/listening.ts'

const ours = /^session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/

/** The answer to a request as it stands. */
async function raw(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  let answer = ''
  for await (const chunk of socket.setEncoding('latin1')) answer += chunk
  return answer
}

/** Logs in, and lets the application write its response in its own way. */
const afterLogin = async (write: (response: ServerResponse, visit: AnyVisit) => unknown) => {
  const { send } = await serve(async (visit, _request, response) => {
    await visit.logIn(ada)
    await write(response, visit)
  })
  return send('/', { method: 'POST' })
}

describe('our headers are in the response, whatever the application does to it', () => {
  const writes: Record<string, (response: ServerResponse) => unknown> = {
    'nothing but end': response => response.end('x'),
    'setHeader afterwards': response => {
      response.setHeader('Set-Cookie', 'theme=dark')
      response.setHeader('Cache-Control', 'public, max-age=60')
      response.setHeader('Vary', 'Accept-Encoding')
      response.end('x')
    },
    appendHeader: response => {
      response.appendHeader('Set-Cookie', 'theme=dark')
      response.appendHeader('Vary', 'Accept-Encoding')
      response.end('x')
    },
    'writeHead with an object': response =>
      response
        .writeHead(200, { 'Set-Cookie': 'theme=dark', Vary: 'Accept-Encoding', 'cache-control': 'public' })
        .end('x'),
    'writeHead with an object and a reason': response =>
      response.writeHead(200, 'Fine', { 'SET-COOKIE': ['theme=dark'], VARY: 'Accept-Encoding' }).end('x'),
    'writeHead with a reason and null': response => response.writeHead(200, 'Fine', null as never).end('x'),
    'writeHead with a flat array': response =>
      response
        .writeHead(200, ['Set-Cookie', 'theme=dark', 'Set-Cookie', 'lang=en', 'Vary', 'Accept-Encoding'])
        .end('x'),
    'writeHead with a reason and a flat array': response =>
      response.writeHead(200, 'Fine', ['Set-Cookie', 'theme=dark', 'Cache-Control', 'max-age=5']).end('x'),
    'writeHead with pairs': response =>
      response
        .writeHead(200, [
          ['Set-Cookie', 'theme=dark'],
          ['Set-Cookie', 'lang=en'],
          ['Vary', 'Accept-Encoding'],
        ] as never)
        .end('x'),
    'writeHead with an array value': response =>
      response.writeHead(200, ['Set-Cookie', ['theme=dark', 'lang=en']] as never).end('x'),
    'a stream': response => pipeline(Readable.from(['a', 'b', 'c']), response),
    flushHeaders: response => {
      response.setHeader('Set-Cookie', 'theme=dark')
      response.flushHeaders()
      response.end('x')
    },
    'removeHeader of all': response => {
      for (const name of ['Set-Cookie', 'Cache-Control', 'Vary']) response.removeHeader(name)
      response.end('x')
    },
    '204': response => response.writeHead(204).end(),
    '304': response => response.writeHead(304, { ETag: '"x"', 'Set-Cookie': 'theme=dark' }).end(),
    redirect: response => response.writeHead(303, { Location: '/' }).end(),
    'early hints first': response => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.end('x')
    },
    'a malformed writeHead first': response => {
      expect(() => response.writeHead(9999)).toThrow(RangeError)
      expect(() => response.writeHead(200, ['odd'])).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }))
      expect(() => response.writeHead(200, { 'bad name': 'x' })).toThrow()
      response.end('x')
    },
  }
  it.each(Object.entries(writes))('%s', async (name, write) => {
    const { headers, cookies, status } = await afterLogin(write)
    expect(cookies.filter(cookie => cookie.startsWith('session_id='))).toEqual([expect.stringMatching(ours)])
    expect(headers['cache-control']).toBe('no-store')
    expect(headers.vary).toMatch(/(^|, )Cookie$/)
    // What the application said is there too.
    const source = String(write)
    expect(cookies.includes('theme=dark')).toBe(source.includes('theme=dark'))
    expect(cookies.includes('lang=en')).toBe(source.includes('lang=en'))
    expect(String(headers.vary).split(', ').includes('Accept-Encoding')).toBe(source.includes('Accept-Encoding'))
    expect(cookies).toHaveLength(new Set(cookies).size)
    expect(cookies.filter(cookie => !['theme=dark', 'lang=en'].includes(cookie))).toHaveLength(1)
    expect(status).toBe(name === 'redirect' ? 303 : Number(/^\d+$/.exec(name) ?? 200))
    if (name === '304') expect(headers.etag).toBe('"x"')
  })

  it('and the reason phrase, the status and the chain stay the application’s', async () => {
    const { port } = await serve(async (visit, _request, response) => {
      await visit.logIn(ada)
      expect(response.writeHead(201, 'Made It', { 'X-One': '1' })).toBe(response)
      response.end('x')
    })
    const text = await raw(port, 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(text).toMatch(/^HTTP\/1\.1 201 Made It\r\n/)
    expect(text).toMatch(/\r\nX-One: 1\r\n/i)
    expect(text.match(/^set-cookie:/gim)).toHaveLength(1)
  })

  it.each<[string, (response: ServerResponse) => unknown, string[]]>([
    ['appendHeader', response => response.appendHeader('Set-Cookie', 'after=1').end('x'), ['after=1']],
    ['a writeHead with others', response => response.writeHead(200, { 'X-One': '1' }).end('x'), []],
  ])('headers that were set before the visit survive %s', async (_, write, more) => {
    const { send } = await serve(async (visit, _request, response) => {
      response.setHeader('Set-Cookie', ['before=1'])
      response.setHeader('Vary', 'Accept')
      await visit.logIn(ada)
      write(response)
    })
    const { cookies, headers } = await send('/', { method: 'POST' })
    expect(cookies).toEqual(['before=1', ...more, expect.stringMatching(ours)])
    expect([headers.vary, headers['x-one']]).toEqual(['Accept, Cookie', more.length > 0 ? undefined : '1'])
  })

  it('an array given to writeHead replaces what was set before, as Node has it', async () => {
    const { headers, cookies } = await afterLogin(response => {
      response.setHeader('X-Theme', 'old')
      response.setHeader('Set-Cookie', 'theme=old')
      response.writeHead(200, ['X-Theme', 'new', 'x-theme', 'newer', 'Set-Cookie', 'theme=new']).end()
    })
    expect(headers['x-theme']).toBe('new, newer')
    expect(cookies).toEqual(['theme=new', expect.stringMatching(ours)])
  })
})

describe('others who put themselves around writeHead', () => {
  /** What on-headers, and with it compression, morgan and cookie-session, do to a response. */
  function onHeaders(response: ServerResponse, listener: (response: ServerResponse) => void): void {
    const previous = response.writeHead
    let fired = false
    response.writeHead = function patched(this: ServerResponse, ...args: unknown[]) {
      const headers = typeof args[1] === 'string' ? args[2] : args[1]
      if (headers && !Array.isArray(headers))
        for (const [name, value] of Object.entries(headers)) this.setHeader(name, value as string)
      if (!fired) {
        fired = true
        listener(this)
      }
      return Reflect.apply(previous, this, typeof args[1] === 'string' ? [args[0], args[1]] : [args[0]])
    } as ServerResponse['writeHead']
  }
  const overwrite = (response: ServerResponse) => {
    response.setHeader('Set-Cookie', 'theirs=1')
    response.setHeader('Vary', 'Accept-Encoding')
    response.setHeader('Cache-Control', 'public')
  }
  const append = (response: ServerResponse) => {
    response.appendHeader('Set-Cookie', 'theirs=1')
    response.setHeader('Vary', 'Accept-Encoding')
  }
  const write: Record<string, (response: ServerResponse) => unknown> = {
    implicitly: response => response.end('x'),
    'with an object': response =>
      response.writeHead(200, { 'Set-Cookie': 'app=1', 'Cache-Control': 'public' }).end('x'),
    'with a flat array': response => response.writeHead(200, ['Set-Cookie', 'app=1']).end('x'),
  }
  for (const [how, listener] of Object.entries({ overwrite, append }))
    for (const [when, order] of Object.entries({
      before: ['them', 'us'],
      after: ['us', 'them'],
      around: ['them', 'us', 'them'],
    }))
      it.each(Object.keys(write))(`lose nothing of ours (${how}, ${when} us, %s)`, async name => {
        const handler: Handler = async (visit, _request, response) => {
          for (const who of order)
            if (who === 'us') await visit.logIn(ada)
            else onHeaders(response, listener)
          write[name]!(response)
        }
        const { send } = await serve(handler)
        const { cookies, headers } = await send('/', { method: 'POST' })
        expect(cookies.filter(cookie => cookie.startsWith('session_id='))).toEqual([expect.stringMatching(ours)])
        expect(cookies).toContain('theirs=1')
        expect(headers['cache-control']).toBe('no-store')
        expect(headers.vary).toBe('Accept-Encoding, Cookie')
      })

  it.each([false, true])('find setHeader as it was afterwards, the response’s own or not: %s', async isOwn => {
    let after: unknown[] = []
    const { send } = await serve(async (visit, _request, response) => {
      onHeaders(response, overwrite)
      if (isOwn) response.setHeader = response.setHeader.bind(response)
      const { setHeader } = response
      await visit.logIn(ada)
      response.writeHead(200)
      after = [response.setHeader === setHeader, Object.hasOwn(response, 'setHeader')]
      response.end()
    })
    await send('/', { method: 'POST' })
    expect(after).toEqual([true, isOwn])
  })

  it('are given the reason phrase too', async () => {
    const { port } = await serve(async (visit, _request, response) => {
      onHeaders(response, overwrite)
      await visit.logIn(ada)
      response.writeHead(201, 'Made It', { 'X-One': '1' }).end('x')
    })
    const text = await raw(port, 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(text).toMatch(/^HTTP\/1\.1 201 Made It\r\n/)
    expect(text).toMatch(/\r\nX-One: 1\r\n/i)
  })
})

describe.each<[string, (request: IncomingMessage) => ServerResponse | undefined]>([
  ['without a response', () => undefined],
  ['with a response object, as @fastify/websocket and express-ws make one', request => new ServerResponse(request)],
  ['with one whose head was written', request => new ServerResponse(request).writeHead(101)],
])('%s', (_name, responseTo) => {
  it('an upgrade finds the session, is guarded, and begins and prolongs nothing', async () => {
    const { http, sessions, clock, calls } = await upgrading()
    const { secret } = await sessions.create(ada)
    clock.now += 20 * 60_000
    const upgrade = (headers: string) =>
      http(`GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`)
    expect(await upgrade(`Cookie: session_id=${secret}\r\nOrigin: http://localhost\r\n`)).toContain(
      'ada ERR_SESSION_HEADERS_SENT',
    )
    expect(await upgrade(`Cookie: session_id=${secret}\r\n`)).toContain('ada ERR_SESSION_HEADERS_SENT')
    for (const headers of ['Origin: http://evil.example\r\n', 'Sec-Fetch-Site: cross-site\r\n', 'Origin: null\r\n'])
      expect(await upgrade(`Cookie: session_id=${secret}\r\n${headers}`)).toContain('ERR_SESSION_CROSS_ORIGIN')
    expect(await sessions.list(42n)).toHaveLength(1)
    expect(calls).not.toContain('touch')
  })

  async function upgrading() {
    const made = await serve((_visit, _request, response) => response.end())
    const { server, port } = await listening((_, response) => response.end())
    server.on('upgrade', async (request, socket) => {
      const visit = made.visits.of(request, responseTo(request))
      const answer = await visit
        .get()
        .then(async session => `${session?.user?.name} ${await visit.logIn(ada).catch(error => error.code)}`)
        .catch(error => error.code)
      socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${answer}`)
    })
    server.unref()
    return { ...made, http: (text: string) => raw(port, text) }
  }
})

it('a request that offers HTTP/2 or TLS is an ordinary one', async () => {
  const { port } = await serve(async (visit, _request, response) => {
    await visit.logIn(ada)
    response.end()
  })
  for (const upgrade of ['h2c', 'TLS/1.2', 'h2c, TLS/1.3']) {
    const answer = await raw(
      port,
      `POST / HTTP/1.1\r\nHost: localhost\r\nUpgrade: ${upgrade}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    )
    expect([upgrade, answer]).toEqual([upgrade, expect.stringContaining('Set-Cookie: session_id=')])
  }
})

it('another response to the same request has a visit of its own, and asked without one the last is meant', async () => {
  const { visits } = await serve((_visit, _request, response) => response.end())
  const request = new IncomingMessage(new Socket())
  const [first, second] = [new ServerResponse(request), new ServerResponse(request)]
  const visit = visits.of(request, first)
  expect([visits.of(request), visits.of(request, first)]).toEqual([visit, visit])
  const other = visits.of(request, second)
  expect(other).not.toBe(visit)
  expect(visits.of(request)).toBe(other)
})
