// What the response does while its session is saved, and where that fails.
import { EventEmitter, once } from 'node:events'
import { get as connectTo } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Store } from 'coatcheck'
import { expressSession } from 'coatcheck/express-session'
import express from 'express'
import onHeaders from 'on-headers'
import { describe, expect, it, vi } from 'vitest'
import { called, controlled, listen, makeManager, type OldHandler, type OldRequest, serve } from './service.ts'

const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session ?? null)),
  '/set': (request, response) => {
    request.session.a = 1
    response.end()
  },
}

const CHANGE = (request: OldRequest) => {
  request.session.n = (request.session.n ?? 0) + 1
}

/** Ways to answer 'hello', all of which have to bring the cookie. */
const ANSWERS: [string, OldHandler][] = [
  ['end', (_, response) => response.end('hello')],
  ['end with an encoding and a callback', (_, response) => response.end('aGVsbG8=', 'base64', () => {})],
  ['writeHead and end', (_, response) => response.writeHead(200, { 'content-length': 5 }).end('hello')],
  [
    'writeHead with a reason and cookies of its own',
    (_, response) => response.writeHead(200, 'Fine', { 'Set-Cookie': 'other=1' }).end('hello'),
  ],
  [
    'end twice',
    (_, response) => {
      response.end('hello')
      response.end('bye')
    },
  ],
]

/** Ways to answer 'hello' whose head goes out before the end. */
const STREAMS: [string, OldHandler][] = [
  [
    'end(null) after write',
    (_, response) => {
      response.write('hello')
      response.end(null)
    },
  ],
  [
    'several writes',
    (_, response) => {
      for (const letter of 'hello') response.write(letter)
      response.end()
    },
  ],
  [
    'flushHeaders first',
    (_, response) => {
      response.flushHeaders()
      response.end('hello')
    },
  ],
  ['a stream', (_, response) => Readable.from(['he', 'l', 'lo']).pipe(response)],
]

describe('a response that streams', () => {
  it.each(STREAMS)('cannot begin a session, unless that was saved before: %s', async (_, answer) => {
    const { browser, errors } = await serve({
      ...usual,
      '/answer': (request, response, next) => {
        CHANGE(request)
        return answer(request, response, next)
      },
      '/saved': async (request, response, next) => {
        CHANGE(request)
        await called(back => request.session.save(back))
        return answer(request, response, next)
      },
    })
    const reply = await browser().go('/answer')
    expect([reply.body, reply.cookies]).toEqual(['hello', []])
    expect(errors).toEqual([expect.objectContaining({ code: 'ERR_SESSION_HEADERS_SENT' })])
    const visitor = browser()
    expect((await visitor.go('/saved')).cookies.at(-1)).toMatch(/^session_id=/)
    // What changes in a session that there is already is saved before the end of the answer.
    expect((await visitor.go('/answer')).body).toBe('hello')
    expect((await visitor.go('/')).body).toBe('{"n":2}')
    expect(errors).toHaveLength(1)
  })
})

describe('a response whose session has to be saved', () => {
  it.each(ANSWERS)('arrives whole, with the cookie, and after the write: %s', async (_, answer) => {
    const { store, control } = controlled()
    const order: string[] = []
    const { browser } = await serve(
      {
        ...usual,
        '/answer': (request, response, next) => {
          CHANGE(request)
          return answer(request, response, next)
        },
      },
      { manager: { store } },
    )
    control.before = async verb => void order.push(verb)
    const visitor = browser()
    const reply = await visitor.go('/answer')
    order.push('answered')
    expect([reply.status, reply.body]).toEqual([200, 'hello'])
    expect(reply.cookies.at(-1)).toMatch(/^session_id=/)
    expect(order).toEqual(['create', 'answered'])
    // The same for a session that there is already: the write is done when the answer is there.
    expect((await visitor.go('/answer')).body).toBe('hello')
    expect(order.slice(2)).toEqual(['read', 'update'])
    expect((await visitor.go('/')).body).toBe('{"n":2}')
  })

  it('arrives whole as a long stream', async () => {
    const { browser } = await serve({
      '/': async (request, response) => {
        CHANGE(request)
        await called(back => request.session.save(back))
        Readable.from(Array.from({ length: 200 }, () => 'x'.repeat(10_000))).pipe(response)
      },
    })
    expect((await browser().go('/')).body.length).toBe(2_000_000)
  })

  it('keeps the first of two answers: what comes after it changes neither status nor headers', async () => {
    const made = makeManager()
    const app = express()
    app.use(expressSession(made.sessions))
    app.get('/', (request, response, next) => {
      CHANGE(request as unknown as OldRequest)
      response.set('X-First', '1').redirect('/there')
      next()
    })
    app.use((_request, response) => void response.status(404).set('X-Second', '1').json({ error: 'nothing here' }))
    const { browser } = await listen(app)
    const reply = await browser().go('/')
    expect([reply.status, reply.headers.location, reply.headers['x-first'], reply.headers['x-second']]).toEqual([
      302,
      '/there',
      '1',
      undefined,
    ])
    expect(reply.body).toContain('Redirecting')
  })

  it('works beside what other middleware put around writeHead, before it and after it', async () => {
    const { sessions } = makeManager()
    const session = expressSession(sessions)
    const { browser } = await listen((request, response) => {
      onHeaders(response, () => response.setHeader('x-before', '1'))
      session(request, response, () => {
        onHeaders(response, () => response.setHeader('x-after', '1'))
        CHANGE(request as OldRequest)
        response.end('hello')
      })
    })
    const reply = await browser().go('/')
    expect([reply.body, reply.headers['x-before'], reply.headers['x-after'], reply.cookies.length]).toEqual([
      'hello',
      '1',
      '1',
      1,
    ])
  })

  it('is not kept waiting, nor written to, where nothing changed', async () => {
    const seen: boolean[] = []
    const { browser } = await serve({
      '/': (_, response) => {
        response.end('hello')
        seen.push(response.headersSent, response.writableEnded)
      },
      '/destroyed': async (request, response) => {
        await called(back => request.session.destroy(back))
        await setImmediate()
        response.end('bye')
        seen.push(response.headersSent, response.writableEnded)
      },
    })
    expect((await browser().go('/')).body).toBe('hello')
    expect((await browser().go('/destroyed')).body).toBe('bye')
    expect(seen).toEqual([true, true, true, true])
  })

  it('saves at its end what a streaming handler changed after the head was sent', async () => {
    const { browser } = await serve({
      ...usual,
      '/stream': (request, response) => {
        response.write('a')
        CHANGE(request)
        expect(response.write('b'), 'it is not held').toBe(true)
        response.end('c')
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    expect((await visitor.go('/stream')).body).toBe('abc')
    expect((await visitor.go('/')).body).toBe('{"a":1,"n":1}')
  })

  it('that a streaming handler gave no session before its head tells so, completes, and leaves no session behind', async () => {
    const { browser, calls, errors } = await serve({
      '/stream': (request, response) => {
        response.write('a')
        CHANGE(request)
        response.end('b')
      },
    })
    const reply = await browser().go('/stream')
    expect([reply.body, reply.cookies, calls]).toEqual(['ab', [], []])
    expect(errors).toEqual([expect.objectContaining({ code: 'ERR_SESSION_HEADERS_SENT' })])
  })
})

describe('a write that fails at the end', () => {
  it('goes to the error handler: the answer of the handler is not sent, nor are its headers of the body', async () => {
    const { store, control } = controlled()
    const { sessions } = makeManager({ store })
    const app = express()
    app.use(expressSession(sessions))
    app.post('/', (request, response) => {
      CHANGE(request as unknown as OldRequest)
      response.status(201).set({ ETag: '"1"', Expires: new Date().toUTCString() }).location('/1')
      response.set({ 'Cache-Control': 'public, max-age=3600', 'X-Powered-By': 'tea' }).send('x'.repeat(1000))
    })
    const answerError: express.ErrorRequestHandler = (error, _request, response, _next) => {
      response.statusCode = error.status
      response.end(error.code)
    }
    app.use(answerError)
    const { browser } = await listen(app)
    control.failing.add('create')
    const reply = await browser().post('/')
    expect([reply.status, reply.body]).toEqual([503, 'ERR_SESSION_STORE'])
    const { etag, location, expires } = reply.headers
    expect([etag, location, expires, reply.cookies]).toEqual([undefined, undefined, undefined, []])
    expect(reply.headers['cache-control'], 'an error is not kept as long as the answer would be').toBe('no-store')
    expect(reply.headers['x-powered-by']).toBe('tea')
  })

  it('is told once: the answer of an error handler that uses req.session too goes out', async () => {
    const { store, control } = controlled()
    const { sessions } = makeManager({ store })
    const app = express()
    app.use(expressSession(sessions))
    app.get('/', (request, response) => {
      CHANGE(request as unknown as OldRequest)
      response.end('hello')
    })
    let told = 0
    const answerError: express.ErrorRequestHandler = (_error, request, response, _next) => {
      told += 1
      ;(request as unknown as OldRequest).session.message = 'sorry'
      response.status(503).end('sorry')
    }
    app.use(answerError)
    const { browser } = await listen(app)
    control.failing.add('create')
    const reply = await browser().go('/')
    expect([reply.status, reply.body, told]).toEqual([503, 'sorry', 1])
  })

  it('is given up in time: a store that hangs makes no response hang', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(usual, { manager: { store, storeTimeout: '50ms' } })
    const visitor = browser()
    await visitor.go('/set')
    control.before = verb => (verb === 'create' ? new Promise(() => {}) : Promise.resolve())
    const reply = await browser().go('/set')
    expect([reply.status, reply.body]).toEqual([503, 'ERR_SESSION_STORE'])
  })

  /** A service whose clients go away before it answers, which changes req.session then. */
  async function abandoned(store?: Store) {
    let socket: Socket
    const handled = new EventEmitter()
    const made = await serve(
      {
        ...usual,
        '/': async (request, response) => {
          socket.destroy()
          await once(response, 'close')
          CHANGE(request)
          response.end('hello')
          handled.emit('done')
        },
      },
      { manager: { ...(store && { store }) } },
    )
    const leave = async (cookie = '') => {
      socket = connect(made.port, '127.0.0.1')
      socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookie}\r\n\r\n`)
      await once(handled, 'done')
      await setImmediate()
    }
    return { ...made, leave }
  }

  it('because the client went away is no error: nothing begins, and nothing is told', async () => {
    const { leave, calls, errors } = await abandoned()
    await leave()
    expect([calls, errors]).toEqual([[], []])
  })

  it('for another reason after the client went away is told', async () => {
    const { store, control } = controlled()
    const { leave, browser, errors } = await abandoned(store)
    const visitor = browser()
    await visitor.go('/set')
    control.failing.add('update')
    await leave(visitor.cookie)
    await vi.waitFor(() => expect(errors).toEqual([expect.objectContaining({ code: 'ERR_SESSION_STORE' })]))
  })
})

describe('a store that is down when the request comes', () => {
  it('is an error for next, and no session that looks empty', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(usual, { manager: { store } })
    const visitor = browser()
    await visitor.go('/set')
    control.failing.add('read')
    const reply = await visitor.go('/')
    expect([reply.status, reply.body, reply.cookies]).toEqual([503, 'ERR_SESSION_STORE', []])
    control.failing.clear()
    expect((await visitor.go('/')).body).toBe('{"a":1}')
  })
})

describe('what a callback throws', () => {
  it('is an exception of its own, as it is with express-session, and not a rejected promise of ours', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        const uncaught = process.rawListeners('uncaughtException')
        process.removeAllListeners('uncaughtException')
        process.once('uncaughtException', error => {
          for (const listener of uncaught) process.on('uncaughtException', listener as never)
          response.end(error.message)
        })
        request.session.save(() => {
          throw new Error('mine')
        })
      },
    })
    expect((await browser().go('/')).body).toBe('mine')
  })
})

describe('a request without a response', () => {
  it('such as the upgrade of ws, called with {} or with none, reads its session, and may save what is there', async () => {
    const { sessions, browser, server, port } = await serve(usual)
    const visitor = browser()
    await visitor.go('/set')
    const session = expressSession(sessions)
    const upgraded = async () => {
      const headers = { cookie: visitor.cookie, connection: 'Upgrade', upgrade: 'websocket' }
      const asked = connectTo({ port, headers }).on('error', () => {})
      const [request, socket] = (await once(server, 'upgrade', { signal: AbortSignal.timeout(10_000) })) as [
        OldRequest,
        Socket,
      ]
      socket.destroy()
      asked.destroy()
      return request
    }
    const [bare, request] = [await upgraded(), await upgraded()]
    await called(back => session(bare, undefined as never, back))
    expect(bare.session.a).toBe(1)
    await called(back => session(request, {} as never, back))
    expect(request.session.a).toBe(1)
    request.session.b = 2
    await called(back => request.session.save(back))
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":2}')
    // No response could bring a new ID.
    await called(back => request.session.regenerate(back))
    request.session.c = 3
    await expect(called(back => request.session.save(back))).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
  })
})
