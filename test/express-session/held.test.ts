// A response that is held until its session is saved: what is called on it meanwhile, and what it is like afterwards.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expressSession } from 'coatcheck/express-session'
import { describe, expect, it, vi } from 'vitest'
import { controlled, listen, makeManager, type OldRequest, serve } from './service.ts'

const change = (request: OldRequest) => {
  request.session.n = 1
}

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

  it('answers as on any response: a write says to wait, a head and an end can be chained', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      '/': (request, response) => {
        change(request)
        seen.push(response.flushHeaders(), response.write('he'))
        seen.push(response.setHeader('X-Late', '1') === response, response.end('llo') === response)
      },
      '/head': (request, response) => {
        change(request)
        seen.push(response.writeHead(201) === response)
        response.end()
      },
    })
    const { body, headers } = await browser().go('/')
    expect([body, headers['x-late']]).toEqual(['hello', undefined])
    expect((await browser().go('/head')).status).toBe(201)
    expect(seen).toEqual([undefined, false, true, true, true])
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
        expect(response.write('he')).toBe(false)
        response.flushHeaders()
        await isDrained
        response.end('llo')
      },
    })
    expect((await browser().go('/')).body).toBe('hello')
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
