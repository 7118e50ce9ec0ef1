// A response that is held until its session is saved: what is called on it meanwhile, and what it is like afterwards.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { expressSession } from 'coatcheck/express-session'
import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it, vi } from 'vitest'
import { controlled, listen, makeManager, type OldRequest, serve } from './service.ts'

const change = (request: OldRequest) => {
  request.session.n = 1
}

/** As much as a stream keeps before it says to wait. */
const MUCH = 'x'.repeat(64 * 1024)

describe('what is called on a response that is held', () => {
  it('changes neither its head nor its body once the answer was given', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        response.statusMessage = 'Fine'
        response.setHeader('X-First', '1').setHeader('X-Kept', '1')
        response.end('hello')
        response.statusCode = 500
        response.statusMessage = 'Wrong'
        response.setHeader('X-First', '2')
        response.setHeaders(new Map([['X-Second', '2']]))
        response.appendHeader('X-Second', '3')
        response.removeHeader('X-Kept')
        response.write('more')
        response.end('again')
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
  })

  it('answers as on any response: a write says to wait where much is held, a head and an end can be chained', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        seen.push(response.flushHeaders(), response.write('he'), response.write(MUCH), response.write('l'))
        seen.push(response.setHeader('X-Late', '1') === response, response.end('lo') === response)
      },
      '/head': (request, response) => {
        change(request)
        seen.push(response.writeHead(201) === response)
        response.end()
      },
    })
    const { body, headers } = await browser().go('/')
    expect([body, headers['x-late']]).toEqual([`he${MUCH}llo`, undefined])
    expect((await browser().go('/head')).status).toBe(201)
    expect(seen).toEqual([undefined, true, false, false, true, true, true])
  })

  it('is asked for once: the listeners of its end hear of it once, and a drain only where something was written', async () => {
    const heard: string[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        for (const name of ['finish', 'drain']) response.on(name, () => heard.push(name))
        change(request)
        response.end('hello', () => heard.push('ended'))
      },
      '/written': async (request, response) => {
        change(request)
        if (!response.write('he')) await once(response, 'drain')
        request.session.n = 2
        response.end('llo')
      },
      '/n': (request, response) => response.end(String(request.session.n)),
    })
    expect((await browser().go('/')).body).toBe('hello')
    expect(heard.sort()).toEqual(['ended', 'finish'])
    const visitor = browser()
    expect((await visitor.go('/written')).body).toBe('hello')
    expect((await visitor.go('/n')).body, 'what was changed after the first save').toBe('2')
  })

  it('drains also where the head was asked for after what was written', async () => {
    const { browser } = await serve({
      '/': async (request, response) => {
        change(request)
        const isDrained = once(response, 'drain')
        expect(response.write(MUCH)).toBe(false)
        response.flushHeaders()
        await isDrained
        response.end('llo')
      },
    })
    expect((await browser().go('/')).body).toBe(`${MUCH}llo`)
  })

  it('drains once a long text has gone, and never where only the head was asked for', async () => {
    const needed: boolean[] = []
    const { browser } = await serve({
      '/long': async (request, response) => {
        change(request)
        response.on('drain', () => needed.push(response.writableNeedDrain))
        response.write('x'.repeat(1_000_000))
        await once(response, 'drain')
        response.end()
      },
      '/head': async (request, response) => {
        change(request)
        response.on('drain', () => needed.push(response.writableNeedDrain))
        response.flushHeaders()
        await vi.waitFor(() => expect(response.headersSent).toBe(true))
        response.end('hello')
      },
    })
    expect((await browser().go('/long')).body.length).toBe(1_000_000)
    expect(needed.splice(0)).toEqual([false])
    expect((await browser().go('/head')).body).toBe('hello')
    expect(needed).toEqual([])
  })

  it('goes through methods that middleware put on the response, which are there again afterwards', async () => {
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
        response.setHeader('X-Late', '1')
        response.appendHeader = own as never
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
})

/** What a handler gives that Node refuses when it is sent. */
const REFUSED: Record<string, (response: ServerResponse) => unknown> = {
  'a header value': response => response.writeHead(302, { Location: '\u0100' }).end(),
  'a status': response => {
    response.statusCode = 1000
    response.end('x')
  },
  'a chunk to write': response => response.write({} as never),
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

  it('after its head is cut off, as without a session: the other half never comes', async () => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        change(request)
        response.writeHead(200)
        response.writeHead(500)
        response.end('sorry')
      },
    })
    await expect(browser().go('/')).rejects.toThrow(/hang up|ECONNRESET|aborted/)
    expect(errors).toMatchObject([{ code: 'ERR_HTTP_HEADERS_SENT' }])
  })
})

describe('a head that is held', () => {
  it('is out for the application: an error handler gives no second answer', async () => {
    const seen: boolean[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        seen.push(response.headersSent)
        response.writeHead(200, { 'Content-Type': 'text/csv' })
        seen.push(response.headersSent)
        setImmediate(() => response.destroy())
        throw new Error('the query failed')
      },
      '/end': (request, response) => {
        change(request)
        response.end('hello')
        seen.push(response.headersSent, Object.hasOwn(response, 'headersSent'))
        response.on('finish', () => seen.push(response.headersSent, Object.hasOwn(response, 'headersSent')))
      },
    })
    await expect(browser().go('/')).rejects.toThrow(/hang up|ECONNRESET|aborted/)
    const visitor = browser()
    expect((await visitor.go('/end')).cookies, 'the session begins all the same').toHaveLength(1)
    expect(seen).toEqual([false, true, true, true, true, false])
  })

  it.each(
    ['before', 'after', 'meanwhile'].flatMap(when =>
      (['writeHead', 'flushHeaders'] as const).map(how => [when, how] as const),
    ),
  )('still brings the cookie of another edge, asked for %s and given by %s', async (when, how) => {
    const { store, control } = controlled()
    const bridge = expressSession(makeManager({ store }).sessions)
    const other = nodeVisits(makeManager().sessions, { cookie: { name: 'other' } })
    const { browser } = await listen((request, response) => {
      if (when === 'before') other.of(request, response).get()
      bridge(request, response, async () => {
        if (when === 'after') await other.of(request, response).get()
        change(request as OldRequest)
        let goOn = () => {}
        const isHeld = new Promise<void>(resolve => {
          goOn = resolve
        })
        control.before = async verb => (verb === 'create' ? isHeld : undefined)
        if (how === 'writeHead') response.writeHead(200)
        else response.flushHeaders()
        await other.of(request, response).logIn({ user: { id: 42n, name: 'ada' } })
        goOn()
        response.end('hello')
      })
    })
    const { status, cookies } = await browser().go('/')
    expect([status, cookies.map(cookie => cookie.split('=', 1)[0]).sort()]).toEqual([200, ['other', 'session_id']])
  })

  it.each(['before', 'after'])('is not changed by a second answer beside a guard set %s it', async when => {
    const { sessions } = makeManager()
    const bridge = expressSession(sessions)
    const other = nodeVisits(makeManager().sessions, { cookie: { name: 'other' } })
    const { browser } = await listen((request, response) => {
      const guard = () => other.of(request, response).get()
      if (when === 'before') guard()
      bridge(request, response, () => {
        if (when === 'after') guard()
        change(request as OldRequest)
        response.writeHead(201, { 'Content-Type': 'text/plain', 'Content-Length': 5 })
        response.setHeader('Content-Type', 'text/html')
        response.removeHeader('Content-Length')
        response.end('hello')
      })
    })
    const { status, headers, body } = await browser().go('/')
    expect([status, headers['content-type'], headers['content-length'], body]).toEqual([
      201,
      'text/plain',
      '5',
      'hello',
    ])
  })
})

/**
 * What the package `compression` does to a response: it chooses by the head, writes the body into a stream of its own, and
 * has those who wait for a drain listen to that one. Until 1.7 it saw by `_header` whether the head is out.
 */
function compress(response: ServerResponse, flag: 'headersSent' | '_header'): void {
  const target = response as any
  const { write, end, on, writeHead } = target
  const waiting: unknown[] = []
  let stream: ReturnType<typeof createGzip> | null = null
  const giveHead = () => target[flag] || target.writeHead(target.statusCode)
  target.writeHead = (...values: unknown[]) => {
    target.writeHead = writeHead
    target.setHeader('Content-Encoding', 'gzip')
    stream = createGzip()
    stream.on('data', chunk => write.call(target, chunk) || stream!.pause())
    stream.on('end', () => end.call(target))
    for (const listener of waiting) stream.on('drain', listener as () => void)
    on.call(target, 'drain', () => stream!.resume())
    return writeHead.apply(target, values)
  }
  target.on = (name: string, listener: () => void) => {
    if (name !== 'drain') return on.call(target, name, listener)
    if (stream === null) waiting.push(listener)
    else stream.on(name, listener)
    return target
  }
  target.write = (chunk: string) => {
    giveHead()
    return stream === null ? write.call(target, chunk) : stream.write(chunk)
  }
  target.end = (chunk?: string) => {
    if (stream?.writableEnded) return false
    giveHead()
    if (stream === null) return end.call(target, chunk)
    return chunk === undefined ? stream.end() : stream.end(chunk)
  }
}

describe('a held answer beside compression', () => {
  const handlers: Record<string, (response: ServerResponse) => unknown> = {
    'that is piped': response => Readable.from([Buffer.from('a'), Buffer.from('b'), Buffer.from('c')]).pipe(response),
    'that is piped in large parts': response =>
      Readable.from([Buffer.from('a'), Buffer.from(MUCH), Buffer.from('c')]).pipe(response),
    'that is written': response => {
      response.write('a')
      response.write('b')
      response.end('c')
    },
    'whose head goes first': response => {
      response.flushHeaders()
      response.write('a')
      response.write('b')
      response.end('c')
    },
  }
  const places = ['before', 'after'].flatMap(place => [
    [place, 'headersSent' as const] as const,
    [place, '_header' as const] as const,
  ])
  it.each(Object.keys(handlers).flatMap(name => places.map(place => [name, ...place] as const)))(
    '%s comes whole, with its compression %s the session, which looks at %s',
    async (name, place, flag) => {
      const { sessions } = makeManager()
      const bridge = expressSession(sessions)
      const { port } = await listen((request, response) => {
        if (place === 'before') compress(response, flag)
        bridge(request, response, error => {
          if (error) throw error
          if (place === 'after') compress(response, flag)
          change(request as OldRequest)
          handlers[name]!(response)
        })
      })
      const reply = await fetch(`http://localhost:${port}/`, { signal: AbortSignal.timeout(10_000) })
      expect(reply.headers.getSetCookie()).toHaveLength(1)
      expect(await reply.text()).toMatch(/^a(?:b|x+)c$/)
    },
  )
})

describe('an answer that could not be saved, beside compression', () => {
  const failing = (place: string) => async (answer: (response: ServerResponse) => unknown) => {
    const { store, control } = controlled()
    const { sessions } = makeManager({ store })
    control.failing.add('create')
    const bridge = expressSession(sessions)
    const errors: unknown[] = []
    const { port } = await listen((request, response) => {
      if (place === 'before') compress(response, 'headersSent')
      bridge(request, response, error => {
        if (error) {
          errors.push(error)
          const body = 'unavailable'
          response.statusCode = 503
          response.setHeader('Content-Length', body.length)
          response.removeHeader('Content-Encoding')
          response.end(body)
          return
        }
        if (place === 'after') compress(response, 'headersSent')
        change(request as OldRequest)
        answer(response)
      })
    })
    const reply = await fetch(`http://localhost:${port}/`, { signal: AbortSignal.timeout(10_000) }).catch(() => null)
    return { status: reply?.status ?? null, errors }
  }

  it.each([
    ['before', 503],
    ['after', null],
  ])('that was put %s the session never mixes with the answer of the error handler', async (place, expected) => {
    for (const answer of [
      (response: ServerResponse) => response.end('hello'),
      (response: ServerResponse) => {
        response.write('hello')
        response.end()
      },
    ]) {
      const { status, errors } = await failing(place)(answer)
      expect([status, errors]).toMatchObject([expected, [{ code: 'ERR_SESSION_STORE' }]])
    }
  })
})

describe('a stream whose session could not be saved', () => {
  it.each([
    ['is answered by the error handler, however late', 503],
    ['is cut off where it ends before the error handler answers', null],
  ])('%s: its rest never passes for the whole', async (_, expected) => {
    const { store, control } = controlled()
    const { sessions } = makeManager({ store })
    const bridge = expressSession(sessions)
    const { browser } = await listen((request, response) => {
      bridge(request, response, async error => {
        if (error) {
          response.write('more')
          if (expected === null) response.end('the end')
          await new Promise(resolve => setImmediate(resolve))
          if (response.destroyed) return
          response.statusCode = 503
          response.end('unavailable')
          return
        }
        change(request as OldRequest)
        control.failing.add('create')
        response.write('first')
      })
    })
    const reply = browser().go('/')
    if (expected === null) await expect(reply).rejects.toThrow(/hang up|ECONNRESET|aborted/)
    else expect(await reply).toMatchObject({ status: expected, body: 'unavailable' })
  })
})

describe('a response after its end', () => {
  it('takes no change of its session any more, however it ended', async () => {
    const { store, control } = controlled()
    const tried: Record<string, unknown> = {}
    const late = (name: string, request: OldRequest) => {
      try {
        request.session.late = 1
        tried[name] = 'kept'
      } catch (error) {
        tried[name] = (error as Error).message
      }
    }
    const { browser } = await serve(
      {
        '/unchanged': (request, response) => {
          response.on('finish', () => late('unchanged', request))
          response.end()
        },
        '/changed': (request, response) => {
          response.on('finish', () => late('changed', request))
          change(request)
          response.end()
        },
        '/failed': (request, response) => {
          response.on('finish', () => late('failed', request))
          control.failing.add('create')
          change(request)
          response.end()
        },
        '/written': (request, response) => {
          response.on('finish', () => late('written', request))
          change(request)
          response.write('a')
          response.end()
        },
      },
      { manager: { store } },
    )
    for (const path of ['/unchanged', '/changed', '/written', '/failed']) await browser().go(path)
    for (const name of ['unchanged', 'changed', 'written', 'failed'])
      expect(tried[name], name).toContain('req.session was changed after its response')
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
