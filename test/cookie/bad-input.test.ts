import { once } from 'node:events'
import { connect } from 'node:net'
import { inspect } from 'node:util'
import { type SessionId, SessionManager, type Store } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ada, jar, makeSessions, serve, threeEndpoints } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'
import { until } from '../support/services/process.ts'

/** Sends bytes as they are, since http.request refuses half of what a hostile client sends. */
async function raw(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const answer: string[] = []
  socket.setEncoding('latin1').on('data', chunk => answer.push(String(chunk)))
  socket.on('error', () => {})
  socket.write(
    Buffer.from(['GET / HTTP/1.1', 'Host: localhost', 'Connection: close', ...lines, '', ''].join('\r\n'), 'latin1'),
  )
  await once(socket, 'close')
  return answer.join('')
}

describe('a Cookie header over HTTP', () => {
  const good = async () => {
    const service = await serve(threeEndpoints)
    const { secret } = await service.sessions.create(ada)
    service.calls.length = 0
    return { ...service, secret }
  }
  const bodyOf = (answer: string) => answer.split('\r\n\r\n')[1]

  const strangers: Record<string, (id: string) => string[]> = {
    empty: () => ['Cookie:'],
    junk: () => ['Cookie: !\x80\xff;;;===;"'],
    'another name': id => [`Cookie: session_idx=${id}; xsession_id=${id}; Session_id=${id}`],
    'a percent-encoded name': id => [`Cookie: session%5Fid=${id}; %73ession_id=${id}`],
    'no name': id => [`Cookie: =session_id=${id}`],
    'NBSP before the name': id => [`Cookie: \xa0session_id=${id}`],
    'NBSP after the name': id => [`Cookie: session_id\xa0=${id}`],
    'UTF-8 bytes of an em space before the name': id => [`Cookie: \xe2\x80\x83session_id=${id}`],
    'a comma between': id => [`Cookie: a=b,session_id=${id}`],
    'an encoded value': id => [`Cookie: session_id=%${id.charCodeAt(0).toString(16)}${id.slice(1)}`],
    'NBSP in the value': id => [`Cookie: session_id=\xa0${id}`],
    'a thousand other cookies': () => [`Cookie: ${Array.from({ length: 1000 }, (_, at) => `c${at}=${at}`).join('; ')}`],
    '15 KB of value': () => [`Cookie: session_id=${'A'.repeat(15_000)}`],
    '15 KB of semicolons': () => [`Cookie: ${';'.repeat(15_000)}`],
    __proto__: () => ['Cookie: session_id=__proto__; __proto__=session_id; constructor=x'],
  }
  it.each(Object.entries(strangers))(
    'with %s leads to no session, and the store is not asked',
    async (_name, lines) => {
      const { port, secret, calls } = await good()
      const answer = await raw(port, lines(secret))
      expect([answer.split('\r\n')[0], bodyOf(answer), calls]).toEqual(['HTTP/1.1 200 OK', 'null', []])
      expect(answer.toLowerCase()).not.toContain('set-cookie')
    },
  )

  const friends: Record<string, (id: string) => string[]> = {
    'a thousand other cookies around': id => [
      `Cookie: ${Array.from({ length: 500 }, (_, at) => `c${at}=${at}`).join('; ')}; session_id=${id}; ${Array.from({ length: 400 }, (_, at) => `d${at}=${at}`).join('; ')}`,
    ],
    'two Cookie lines': id => ['Cookie: a=b', `Cookie: session_id=${id}`],
    $Version: id => [`Cookie: $Version=1; session_id=${id}; $Path=/`],
    'equal duplicates': id => [`Cookie: session_id=${id}; session_id=${id}`],
    'equal duplicates on two lines': id => [`Cookie: session_id=${id}`, `Cookie: session_id=${id}`],
    'an empty one beside it': id => [`Cookie: session_id=; session_id=${id}`],
    'a malformed one on another line': id => [`Cookie: session_id=${id}x`, `Cookie: session_id=${id}`],
    'tabs and spaces': id => [`Cookie: \t session_id \t=\t ${id} \t; a=b`],
  }
  it.each(Object.entries(friends))('with %s leads to the session, by one read', async (_name, lines) => {
    const { port, secret, calls } = await good()
    expect([bodyOf(await raw(port, lines(secret))), calls]).toEqual(['ada', ['read']])
  })

  it.each([
    ['two live values on one line', (one: string, other: string) => [`Cookie: session_id=${one}; session_id=${other}`]],
    [
      'two live values on two lines',
      (one: string, other: string) => [`Cookie: session_id=${one}`, `Cookie: session_id=${other}`],
    ],
  ])('with %s leads to no session, and is told as an event', async (_name, lines) => {
    const { port, secret, sessions, calls, events } = await good()
    const other = await sessions.create({ user: { id: 7n, name: 'max' } })
    calls.length = events.length = 0
    expect([bodyOf(await raw(port, lines(secret, other.secret))), calls, events]).toEqual([
      'null',
      ['read', 'read'],
      ['ambiguous-cookie'],
    ])
  })
})

describe('a session ID that is none', () => {
  const ask = async (made: ReturnType<typeof makeSessions>, id: string) =>
    openVisit(made.sessions, { method: 'GET', secure: true, cookie: `session_id=${id}`, header: onlyHost }).get()

  it('of any other length does not reach the store', async () => {
    const made = makeSessions()
    for (let length = 0; length <= 200; length++)
      if (length !== 43) expect(await ask(made, 'a'.repeat(length))).toBeNull()
    expect(await ask(made, 'a'.repeat(1 << 20))).toBeNull()
    expect(made.calls).toEqual([])
  })

  it('with any other byte at any position does not reach the store', async () => {
    const made = makeSessions()
    const { secret } = await made.sessions.create(ada)
    made.calls.length = 0
    const outside: string[] = []
    for (let code = 0; code < 256; code++) {
      const character = String.fromCharCode(code)
      if (!/[A-Za-z0-9_-]/.test(character)) outside.push(character)
    }
    for (let at = 0; at < secret.length; at++)
      for (const character of outside) {
        const header = secret.slice(0, at) + character + secret.slice(at + 1)
        // Through the manager itself: a cookie cannot even bring some of these bytes.
        expect(await made.sessions.get(header as SessionId)).toBeNull()
        expect(await ask(made, header)).toBeNull()
      }
    expect(made.calls).toEqual([])
  })

  it('but has the right shape finds nothing, the key of a session included', async () => {
    const made = makeSessions()
    const { key, secret } = await made.sessions.create(ada)
    for (const id of [
      '__proto__'.padEnd(43, '_'),
      'constructor'.padEnd(43, '-'),
      key.slice(0, 43),
      key.slice(3),
      'A'.repeat(43),
    ])
      expect(await ask(made, id)).toBeNull()
    expect(await ask(made, key)).toBeNull()
    for (let at = 0; at < secret.length; at++) {
      const near = secret.slice(0, at) + (secret[at] === 'A' ? 'B' : 'A') + secret.slice(at + 1)
      expect(await ask(made, near)).toBeNull()
    }
  })
})

it('no header makes a visit throw anything but what it documents', async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.constantFrom('session_id=x', 'remember_token=a.b; '),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.record({ method: text, cookie: fc.oneof(text, fc.array(text), fc.constant(null)), secure: fc.boolean() }),
      fc.dictionary(fc.constantFrom('origin', 'sec-fetch-site', 'host'), text),
      async (request, headers) => {
        const visit = openVisit(made.sessions, { ...request, header: name => headers[name] || onlyHost(name) })
        const outcome = await visit.get().then(
          session => session,
          error => error.code,
        )
        expect([null, 'ERR_SESSION_CROSS_ORIGIN']).toContain(outcome)
      },
    ),
    { numRuns: 1000 },
  )
})

describe('a store that misbehaves', () => {
  const service = (read: (target: Store) => Store['read']) => {
    const target = new MemoryStore()
    const store = new Proxy<Store>(target, {
      get: (_, verb) => {
        const value = Reflect.get(target, verb)
        if (verb === 'read') return read(target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    return serve(threeEndpoints, { manager: { store, storeTimeout: '60ms' } })
  }
  const behaviours: Record<string, (target: Store) => Store['read']> = {
    throws: () => () => {
      throw new Error('boom')
    },
    rejects: () => () => Promise.reject(new Error('boom')),
    'rejects with nothing': () => () => Promise.reject(undefined),
    hangs: () => () => new Promise(() => {}),
    'answers undefined': () => () => Promise.resolve(undefined) as never,
    'answers nonsense': () => () => Promise.resolve({ hello: 1 }) as never,
    'answers twice': () => () =>
      new Promise((resolve, reject) => {
        setTimeout(() => {
          reject(new Error('first'))
          resolve(null)
        }, 5)
      }),
  }
  it.each(Object.entries(behaviours))('and %s is a 503 in time, and no cookie is touched', async (_name, read) => {
    const { send } = await service(read)
    // On a busy machine a login may take longer than this store has.
    const login = await until('a login', async () => {
      const answer = await send('/login', { method: 'POST' })
      expect(answer.cookies).toHaveLength(1)
      return answer
    })
    const reply = await send('/profile', { headers: { cookie: jar(login.cookies) } })
    expect([reply.status, reply.body, reply.cookies]).toEqual([503, 'ERR_SESSION_STORE', []])
  })
})

it('no secret shows in what a visit throws, prints or tells', async () => {
  const shown: string[] = []
  const store = new MemoryStore()
  const sessions = new SessionManager({
    store,
    rememberFor: '30d',
    onEvent: event => shown.push(inspect(event, { depth: 9, showHidden: true }), JSON.stringify(event, String)),
  })
  const open = (cookie: string | null, header: Record<string, string> = {}) =>
    openVisit(sessions, { method: 'POST', secure: true, cookie, header: name => header[name] ?? onlyHost(name) })
  const first = open(null)
  const session = await first.logIn({ ...ada, remember: true })
  const cookies = first.headers.getSetCookie()
  const secrets = cookies.map(cookie => cookie.split(/[=;]/)[1]!)
  const visit = open(jar(cookies))
  const found = await visit.get()
  for (const value of [visit, found, session, sessions, { ...found }])
    shown.push(
      inspect(value, { depth: 9, showHidden: true }),
      JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? String(item) : item)) ?? '',
    )
  const failures = [
    visit.checkCsrf(secrets[0]),
    open(jar(cookies), { origin: 'https://evil.example' }).get(),
    open(`${jar(cookies)}; session_id=x`).requireUser(),
    openVisit(sessions, { method: 'POST', secure: false, cookie: jar(cookies), header: onlyHost }).logIn(ada),
    openVisit(sessions, {
      method: 'POST',
      secure: true,
      cookie: jar(cookies),
      header: onlyHost,
      canSend: () => false,
    }).logIn(ada),
  ]
  for (const failure of failures)
    shown.push(inspect(await failure.catch(error => error), { depth: 9, showHidden: true }))
  await visit.logOut()
  expect(secrets).toHaveLength(2)
  for (const secret of secrets)
    for (const part of secret.split('.')) for (const text of shown) expect(text).not.toContain(part)
  await sessions.close()
})
