// What each reader makes of a cookie and of a record: which are genuine, who is in them, and how long they live.
import { createHmac } from 'node:crypto'
import { SessionStoreError } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import {
  type CallbackStore,
  fromBetterAuth,
  fromExpressSession,
  fromFastifySession,
  fromKoaSession,
  fromLucia,
  fromNextAuth,
  type OldSession,
  type OldSessions,
  signedId,
} from 'coatcheck/import'
import { describe, expect, it } from 'vitest'
import { BEGIN, connectSid, HOUR, type OldRecord, replacement, SECRET } from '../support/old-sessions.ts'
import { onlyHost } from '../support/only-host.ts'

const hmac = (text: string, key: string | Uint8Array, algorithm = 'sha256') =>
  createHmac(algorithm, key).update(text).digest('base64').replace(/=+$/, '')
const data = { userId: '42', name: 'ada' }

/** A node of the new service that imports what this reader finds. */
function nodeOver(from: OldSessions<OldRecord>, options: object = {}) {
  const world = replacement()
  return { ...world, ...world.node({ importer: { from, ...options } }) }
}
const read = (): OldSession<OldRecord> => ({ data })

/** A store of the callback shape over one record, which may answer in each way that such stores have. */
const storeOf = (answer: (callback: (error: unknown, value?: unknown) => void) => unknown): CallbackStore => ({
  get: (_, callback) => answer(callback),
  destroy: (_, callback) => callback(),
})

describe('secrets', () => {
  it('are text or bytes, one or several, and what is no secret is refused without being quoted', () => {
    const store = storeOf(() => null)
    const bytes = new Uint8Array([1, 2, 3])
    for (const secret of ['a', bytes, ['a', bytes]]) expect(() => fromExpressSession({ secret, store })).not.toThrow()
    for (const secret of ['', new Uint8Array(), ['a', ''], ['a', null], ['a', 5], [['hunter2']]])
      expect(() => fromExpressSession({ secret: secret as never, store })).toThrow('text or bytes that are not empty')
    for (const secret of [[], null, 42, {}])
      expect(() => fromExpressSession({ secret: secret as never, store })).toThrow(
        'secret: expected the secret that the cookies were signed with, or several, got',
      )
    expect(() => fromExpressSession({ secret: [['hunter2']] as never, store })).not.toThrow('hunter2')
    expect(() => fromFastifySession({ secret: '', store })).toThrow('fromFastifySession: secret: expected')
    expect(() => fromKoaSession({ keys: [] })).toThrow('fromKoaSession: keys: expected')
    expect(() => signedId('a.b', [])).toThrow('signedId: expected the secret')
  })

  it('that are changed in the array afterwards change nothing', async () => {
    const secret = [SECRET]
    const from = fromExpressSession<OldRecord>({ secret, store: storeOf(callback => callback(null, data)) })
    secret[0] = 'of an attacker'
    expect((await nodeOver(from).ask(connectSid('an-old-id'))).name).toBe('ada')
    expect((await nodeOver(from).ask(connectSid('an-old-id', 'of an attacker'))).name).toBeNull()
  })
})

describe('the ticket of a signed value', () => {
  it('is an ID before the last dot that one of the secrets has signed, with or without padding', () => {
    const bytes = new Uint8Array([1, 2, 3])
    for (const secret of ['a', bytes])
      for (const padding of ['', '=', '=='])
        expect(signedId(`i.d.${hmac('i.d', secret)}${padding}`, ['b', secret])).toEqual({
          id: 'i.d',
          secret: `i.d.${hmac('i.d', secret)}`,
        })
    expect(signedId(`id.${hmac('id', 'a', 'sha512')}`, 'a', 'sha512')?.id).toBe('id')
  })

  it('is nothing where the value is not signed so', () => {
    const signature = hmac('id', 'a')
    const others = [
      '',
      'id',
      '.',
      'id.',
      `.${hmac('', 'a')}`,
      `id${signature}`,
      `ID.${signature}`,
      `id.${signature}===`,
      `id.=${signature}`,
      `id.${signature}x`,
      `id.${hmac('id', 'a', 'sha512')}`,
    ]
    for (const text of others) expect(signedId(text, 'a'), text).toBeNull()
  })
})

describe('a cookie of express-session', () => {
  const from = () => fromExpressSession<OldRecord>({ secret: SECRET, store: storeOf(callback => callback(null, data)) })
  const value = `s:an-old-id.${hmac('an-old-id', SECRET)}`

  it('is read percent-encoded or not, in quotes or not', async () => {
    for (const text of [value, encodeURIComponent(value), `"${value}"`, `"${encodeURIComponent(value)}"`])
      expect((await nodeOver(from()).ask(`connect.sid=${text}`)).name, text).toBe('ada')
  })

  it('is refused in half a pair of quotes, where the percent signs are broken, and without its mark', async () => {
    for (const text of [`"${value}`, `${value}"`, '"', '""', `${value}%`, value.slice(2), `j:${value.slice(2)}`])
      expect((await nodeOver(from()).ask(`connect.sid=${text}`)).name, text).toBeNull()
  })
})

describe('a cookie of @fastify/session', () => {
  it('has the prefix, the algorithm and the name of the old service', async () => {
    const store = storeOf(callback => callback(null, { ...data, sessionId: 'an-id', encryptedSessionId: 'x' }))
    const from = fromFastifySession<OldRecord>({
      secret: SECRET,
      store,
      cookie: { name: 'sid', path: '/app', domain: 'example.com' },
      cookiePrefix: 'p:',
      algorithm: 'sha512',
    })
    const seen: unknown[] = []
    const toLogin = (found: object) => {
      seen.push(found)
      return { user: { id: 42n, name: 'ada' } }
    }
    const ask = (cookie: string) => nodeOver(from, { toLogin }).ask(cookie)
    const value = `an-id.${hmac('an-id', SECRET, 'sha512')}`
    const world = nodeOver(from, { toLogin })
    const { name, next } = await world.ask(`sid=p:${encodeURIComponent(value)}`)
    expect(name).toBe('ada')
    expect(seen).toEqual([data])
    expect((await world.open(next())).setCookie[0]).toMatch(/^sid=; Max-Age=0; Domain=example.com; Path=\/app;/)
    for (const cookie of [
      `sid=${value}`,
      `sid=q:${value}`,
      `sid=p:an-id.${hmac('an-id', SECRET)}`,
      'sid=%',
      `sessionId=p:${value}`,
    ])
      expect((await ask(cookie)).name, cookie).toBeNull()
  })

  it('is without a prefix, by SHA-256 and called sessionId where nothing else is said', async () => {
    const from = fromFastifySession<OldRecord>({ secret: SECRET, store: storeOf(callback => callback(null, data)) })
    expect((await nodeOver(from).ask(`sessionId=an-id.${hmac('an-id', SECRET)}`)).name).toBe('ada')
  })

  it('has its record removed when the browser comes with our cookie', async () => {
    const ended: string[] = []
    const store: CallbackStore = {
      get: (_, callback) => callback(null, data),
      destroy: (id, callback) => {
        ended.push(id)
        callback()
      },
    }
    const { ask } = nodeOver(fromFastifySession<OldRecord>({ secret: SECRET, store }))
    const { next } = await ask(`sessionId=an-id.${hmac('an-id', SECRET)}`)
    expect(ended).toEqual([])
    await ask(next())
    expect(ended).toEqual(['an-id'])
  })

  it('options of which one is misspelt or no text are refused by name', () => {
    const store = storeOf(() => null)
    const make = (options: object) => () => fromFastifySession({ secret: 'a', store, ...options } as never)
    expect(make({ cookieName: 'sid' })).toThrow(
      'fromFastifySession: "cookieName" is not an option; it is called cookie',
    )
    expect(make({ cookiePrefix: 5 })).toThrow('cookiePrefix: expected text, got 5')
    expect(make({ algorithm: null })).toThrow('algorithm: expected text, got null')
    expect(make({ store: { get() {} } })).toThrow(
      'fromFastifySession: store: expected the store that the old service has',
    )
    expect(make({ cookie: { path: '/' } })).toThrow('cookie: expected the name of a cookie, or { name, path, domain }')
    expect(make({ cookie: null })).toThrow('cookie: expected the name of a cookie')
    expect(() => fromFastifySession({ store } as never)).toThrow('fromFastifySession: secret: expected the secret')
    expect(() => fromFastifySession({ secret: 'a' } as never)).toThrow('store: expected the store')
  })
})

describe('a cookie of koa-session', () => {
  const base64url = (text: string) => text.replaceAll('/', '_').replaceAll('+', '-')
  const signed = (value: string, key: string, name = 'koa.sess') =>
    `${name}=${value}; ${name}.sig=${base64url(hmac(`${name}=${value}`, key, 'sha1'))}`
  const held = (content: unknown) => Buffer.from(JSON.stringify(content)).toString('base64')
  const own = { _expire: BEGIN + HOUR, _maxAge: 2 * HOUR }

  it('may hold the whole session, and goes with its signature', async () => {
    // Several, so that + and / of base64 occur in a signature.
    for (let at = 0; at < 8; at += 1) {
      const { ask, told } = nodeOver(fromKoaSession({ keys: ['new', 'old'] }))
      const { name, session, next } = await ask(signed(held({ ...data, at, ...own }), at % 2 ? 'new' : 'old'))
      expect(name).toBe('ada')
      expect(session?.createdAt, 'by the last visit').toBe(BEGIN - HOUR)
      expect((await ask(next())).removed).toEqual(['koa.sess', 'koa.sess.sig'])
      expect(told, 'there is no record to be removed').toEqual([])
    }
  })

  it('gives toLogin what the application kept, and nothing of koa-session', async () => {
    const seen: unknown[] = []
    const toLogin = (found: object) => void seen.push(found)
    const content = { ...data, ...own, _session: true, _requireSave: true }
    await nodeOver(fromKoaSession({ keys: 'k' }), { toLogin }).ask(signed(held(content), 'k'))
    expect(seen).toEqual([data])
  })

  it('has expired with its _expire, and counts from now where it has none', async () => {
    const ask = (content: object) => nodeOver(fromKoaSession({ keys: 'k' })).ask(signed(held(content), 'k'))
    expect((await ask({ ...data, _expire: BEGIN })).name).toBeNull()
    for (const content of [
      data,
      { ...data, _maxAge: HOUR },
      { ...data, ...own, _maxAge: 'session' },
      { ...data, ...own, _maxAge: 0 },
      { ...data, ...own, _maxAge: -HOUR },
    ])
      expect((await ask(content)).session?.createdAt).toBe(BEGIN)
    for (const _maxAge of ['session', '7200000', 0, -HOUR])
      expect(await fromKoaSession({ keys: 'k' }).read(held({ ...data, ...own, _maxAge }))).toEqual({
        data,
        seenAt: null,
        expiresAt: own._expire,
      })
  })

  it('that holds no object is no session, and one that holds no JSON is told', async () => {
    for (const content of ['text', 42, null, ['a']]) {
      const { ask, told } = nodeOver(fromKoaSession({ keys: 'k' }))
      expect((await ask(signed(held(content), 'k'))).name).toBeNull()
      expect(told).toEqual([])
    }
    const { ask, told } = nodeOver(fromKoaSession({ keys: 'k' }))
    expect((await ask(signed('bm8gSlNPTg', 'k'))).name).toBeNull()
    expect(told).toMatchObject([{ message: 'read: an old session is no JSON, and was left alone' }])
  })

  it('is refused where the signature is missing, of another cookie or key, or where its value is empty', async () => {
    const value = held({ ...data, ...own })
    const genuine = signed(value, 'k')
    for (const cookie of [
      genuine.split(';')[0]!,
      signed(value, 'guessed'),
      genuine.replace('koa.sess=', 'koa.sess=x'),
      genuine.replace('koa.sess=', 'koa.sess=x').replace(';', '";'),
      genuine.replace('koa.sess.sig=', 'koa.sess.sig=x'),
      signed('', 'k'),
      `koa.sess=""; koa.sess.sig=${base64url(hmac('koa.sess=', 'k', 'sha1'))}`,
    ])
      expect((await nodeOver(fromKoaSession({ keys: 'k' })).ask(cookie)).name, cookie).toBeNull()
    for (const cookie of [
      genuine.replace(value, `"${value}"`),
      `${genuine}; koa.sess.sig=planted`,
      `koa.sess.sig=planted; koa.sess=planted; ${genuine}`,
    ])
      expect((await nodeOver(fromKoaSession({ keys: 'k' })).ask(cookie)).name, cookie).toBe('ada')
  })

  it('may name a session of a store, which is asked for it and removes it', async () => {
    const asked: unknown[][] = []
    const store = {
      get: async (...values: unknown[]) => {
        asked.push(['get', ...values])
        return { ...data, ...own }
      },
      destroy: async (...values: unknown[]) => void asked.push(['destroy', ...values]),
    }
    const from = fromKoaSession<OldRecord>({ keys: 'k', store, cookie: { name: 'sess', domain: 'example.com' } })
    const { ask, open } = nodeOver(from)
    const { name, next } = await ask(signed('an-id', 'k', 'sess'))
    expect(name).toBe('ada')
    const { setCookie } = await open(next())
    const get = ['get', 'an-id', 0, { rolling: false, ctx: undefined }]
    expect(asked).toStrictEqual([get, get, ['destroy', 'an-id', { ctx: undefined }]])
    expect(setCookie).toHaveLength(2)
    for (const line of setCookie) expect(line).toMatch(/^sess(\.sig)?=; .*Domain=example.com/)
  })

  it('options of which one is misspelt are refused by name', () => {
    expect(() => fromKoaSession({ keys: 'k', key: 'sess' } as never)).toThrow(
      'fromKoaSession: "key" is not an option; it is called cookie',
    )
    expect(() => fromKoaSession({} as never)).toThrow('fromKoaSession: keys: expected the secret')
    expect(() => fromKoaSession({ secret: 'k' } as never)).toThrow('they are called keys')
    expect(() => fromKoaSession({ keys: 'k', store: {} as never })).toThrow('fromKoaSession: store: expected the store')
    expect(() => fromKoaSession({ keys: 'k', cookie: 5 as never })).toThrow('cookie: expected the name of a cookie')
  })
})

describe('a store of the old service', () => {
  const ask = (answer: Parameters<typeof storeOf>[0]) =>
    nodeOver(fromExpressSession<OldRecord>({ secret: SECRET, store: storeOf(answer) }), {}).ask(connectSid('an-old-id'))

  it('answers by its callback, beside a promise or not', async () => {
    expect((await ask(callback => callback(null, data))).name).toBe('ada')
    expect((await ask(callback => Promise.resolve().then(() => callback(undefined, data)))).name).toBe('ada')
    const noPromise = JSON.parse('{ "then": "no function" }')
    expect((await ask(callback => callback(null, data) ?? noPromise)).name).toBe('ada')
  })

  it('fails by its callback, by its promise or at once: each is an outage', async () => {
    const lost = new Error('ECONNREFUSED')
    for (const answer of [
      (callback: (error: unknown) => void) => callback(lost),
      () => Promise.reject(lost),
      () => {
        throw lost
      },
    ])
      await expect(ask(answer)).rejects.toMatchObject({ status: 503, operation: 'read', cause: lost })
    await expect(ask(() => Promise.reject(null))).rejects.toMatchObject({ status: 503, cause: null })
    await expect(ask(callback => callback('ECONNREFUSED'))).rejects.toBeInstanceOf(SessionStoreError)
  })

  it('has no session where its file is absent, or where it answers nothing or no object', async () => {
    const absent = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' })
    expect((await ask(callback => callback(absent))).name).toBeNull()
    for (const answer of [undefined, null, '', 'text', 42, [data]])
      expect((await ask(callback => callback(null, answer))).name).toBeNull()
  })

  it('tells when the session was last used and when it ends, by a date, its text, milliseconds or a BigInt', async () => {
    const expires = BEGIN + HOUR
    for (const form of [
      new Date(expires),
      new Date(expires).toISOString(),
      new Date(expires).toUTCString(),
      new Date(expires).toISOString().replace('T', ' ').replace('Z', '+00:00'),
      expires,
      expires + 0.5,
      BigInt(expires),
      String(expires),
    ]) {
      const answer = await ask(callback =>
        callback(null, { ...data, cookie: { expires: form, originalMaxAge: 2 * HOUR } }),
      )
      expect(answer.session?.createdAt).toBe(BEGIN - HOUR)
    }
    for (const form of [false, undefined, null])
      expect((await ask(callback => callback(null, { ...data, cookie: { expires: form } }))).name, String(form)).toBe(
        'ada',
      )
    const local = new Date(expires).toISOString().slice(0, -1)
    for (const form of [true, Number.NaN, Number.POSITIVE_INFINITY, new Date(Number.NaN), {}, '', 'soon', local])
      await expect(
        ask(callback => callback(null, { ...data, cookie: { expires: form } })),
        `${String(form)}: it would pass for unknown, and the session would live`,
      ).rejects.toMatchObject({ status: 503, cause: { message: expect.stringContaining('cookie.expires: expected') } })
    const ofTheBrowser = { expires: null, originalMaxAge: HOUR }
    expect((await ask(callback => callback(null, { ...data, cookie: ofTheBrowser }))).session?.createdAt).toBe(BEGIN)
    for (const originalMaxAge of [null, '7200000', 0, -HOUR]) {
      const cookie = { expires, originalMaxAge }
      expect((await ask(callback => callback(null, { ...data, cookie }))).session?.createdAt).toBe(BEGIN)
      const store = storeOf(callback => callback(null, { ...data, cookie }))
      expect(await fromExpressSession({ secret: SECRET, store }).read('an-id')).toEqual({
        data,
        seenAt: null,
        expiresAt: expires,
      })
    }
  })

  it('that answers a session says that it lives: stores prolong one without its text', async () => {
    for (const expires of [BEGIN, BEGIN - HOUR, new Date(BEGIN - HOUR).toISOString()])
      expect((await ask(callback => callback(null, { ...data, cookie: { expires } }))).name).toBe('ada')
  })

  it('options of express-session that are misspelt are refused by name', () => {
    const store = storeOf(() => null)
    const make = (options: object) => () => fromExpressSession({ secret: 'a', store, ...options } as never)
    for (const name of ['key', 'name'])
      expect(make({ [name]: 'sid' })).toThrow(`fromExpressSession: "${name}" is not an option; it is called cookie`)
    expect(() => fromExpressSession({ store } as never)).toThrow('fromExpressSession: secret: expected the secret')
    expect(() => fromExpressSession({ secret: 'a' } as never)).toThrow('fromExpressSession: store: expected the store')
    expect(make({ cookie: 5 })).toThrow(
      "cookie: expected the name of a cookie, or { name, path, domain }, such as 'connect.sid'",
    )
    expect(make({ store: { destroy() {} } })).toThrow('store: expected the store that the old service has')
    expect(make({ store: null })).toThrow('got null')
    for (const cookie of ['sid', { name: 'sid' }]) expect(make({ cookie })).not.toThrow()
    expect(make({ cookie: { name: 5 } })).toThrow('cookie: expected the name of a cookie')
  })
})

describe('a reader of one’s own', () => {
  it('has the value of the cookie for an ID and a secret, where it says nothing else', async () => {
    const ids: string[] = []
    const from = {
      cookie: { name: '__Secure-token', path: '/app', domain: 'example.com' },
      read: (id: string) => {
        ids.push(id)
        return read()
      },
    }
    const world = nodeOver(from)
    const { name, session, next } = await world.ask('__Secure-token=a%20"b')
    expect(name).toBe('ada')
    expect(new Set(ids)).toEqual(new Set(['a%20"b']))
    expect(world.told).toEqual([])
    expect((await world.open(next())).setCookie[0]).toMatch(
      /^__Secure-token=; Max-Age=0; Domain=example.com; Path=\/app;.*Secure/,
    )
    expect((await world.ask('__Secure-token=a%20"b')).session?.secret).toBe(session?.secret)
    expect(world.told).toEqual([])
  })

  it('has its cookie removed as a browser takes it: without HTTPS by no secure one, but where the name asks for it', async () => {
    for (const [name, isSecure] of [
      ['token', false],
      ['a__Host-token', false],
      ['__Secure-token', true],
      ['__host-token', true],
    ] as const) {
      const { sessions, importer } = nodeOver({ cookie: name, alsoClear: [`${name}.sig`], read })
      const options = { cookie: { secure: false } }
      const open = (header: string) =>
        openVisit(sessions, { method: 'GET', cookie: header, secure: false, header: onlyHost }, options)
      const { visit } = await importer.import(`${name}=a`, open, options)
      const session = await visit.get()
      const { setCookie } = await importer.import(`session_id=${session?.secret}; ${name}=a`, open, options)
      expect(setCookie, name).toHaveLength(2)
      for (const line of setCookie) expect(line.includes('; Secure'), line).toBe(isSecure)
    }
  })

  it('may call the session otherwise than the cookie: the new ID comes from the cookie, which no reader of the store has', async () => {
    const from = { cookie: 'token', parse: (value: string) => ({ id: value.slice(0, 3) }), read }
    const world = nodeOver(from)
    const first = await world.ask('token=abc-secret')
    expect(first.name).toBe('ada')
    expect((await world.ask('token=abc-secret')).session?.secret).toBe(first.session?.secret)
    expect((await world.ask('token=abc-guessed')).name).toBeNull()
  })

  it.each([null, undefined, {}, { id: '' }, { id: 42 }, { secret: 'a' }])(
    'takes %j from parse for a cookie that is not genuine',
    async ticket => {
      const world = nodeOver({ cookie: 'token', parse: () => ticket as never, read })
      expect((await world.ask('token=a')).name).toBeNull()
      expect(world.store.calls).toEqual([])
    },
  )

  it('is asked for no cookie that is empty', async () => {
    const asked: string[] = []
    const parse = (value: string) => {
      asked.push(value)
      return { id: 'an-id' }
    }
    const { ask } = nodeOver({ cookie: 'token', parse: parse, read })
    expect((await ask('token=')).name).toBeNull()
    expect(asked).toEqual([])
    expect((await ask('token=a')).name).toBe('ada')
  })

  it('is asked for a cookie of 4096 characters, and for none that is longer', async () => {
    for (const [length, name] of [
      [4096, 'ada'],
      [4097, null],
    ] as const)
      expect((await nodeOver({ cookie: 'token', read }).ask(`token=${'a'.repeat(length)}`)).name).toBe(name)
  })

  it('may answer undefined for none, and is refused by name where it answers what is no session', async () => {
    for (const none of [null, undefined])
      expect((await nodeOver({ cookie: 'token', read: () => none as never }).ask('token=a')).name).toBeNull()
    for (const answer of [42, 'text', [data], {}, { cookie: {} }])
      await expect(nodeOver({ cookie: 'token', read: () => answer as never }).ask('token=a')).rejects.toThrow(
        'sessionImporter: expected { data, createdAt, expiresAt } or null from read(id), got',
      )
  })

  it('gives instants in epoch milliseconds: 0 is long ago, and what is none is refused by name', async () => {
    const ask = (times: object) => nodeOver({ cookie: 'token', read: () => ({ data, ...times }) }).ask('token=a')
    for (const times of [{ createdAt: 0 }, { seenAt: 0 }, { expiresAt: 0 }, { expiresAt: BEGIN }])
      expect((await ask(times)).name).toBeNull()
    expect((await ask({ createdAt: BEGIN - 10.5 })).session?.createdAt).toBe(BEGIN - 11)
    for (const name of ['createdAt', 'seenAt', 'expiresAt'])
      for (const value of [-1, Number.POSITIVE_INFINITY, '1800000000000', new Date(), true])
        await expect(ask({ [name]: value }), `${name}: ${value}`).rejects.toThrow(
          `sessionImporter: ${name}: expected epoch milliseconds or null, got`,
        )
  })

  it('that throws what is no error is an outage, and one that finds no JSON is told', async () => {
    const throwing = (thrown: unknown) =>
      nodeOver({
        cookie: 'token',
        read: () => {
          throw thrown
        },
      })
    for (const thrown of [null, undefined, 'text']) {
      const world = throwing(thrown)
      await expect(world.ask('token=a')).rejects.toMatchObject({ status: 503, outcome: 'not-applied' })
    }
    const world = throwing(new SyntaxError('Unexpected token'))
    expect((await world.ask('token=a')).name).toBeNull()
    expect(world.told).toMatchObject([{ operation: 'read', outcome: 'not-applied' }])
  })

  it('that removes nothing imports and logs out all the same', async () => {
    const world = nodeOver({ cookie: 'token', read })
    const { visit, name } = await world.ask('token=a')
    expect(name).toBe('ada')
    await visit.logOut()
    expect((await world.ask('token=a')).name).toBeNull()
    expect(world.told).toEqual([])
  })
})

describe('a row that names another ID', () => {
  it('is no session: a database that compares without case finds one for each spelling', async () => {
    const session = {
      id: 'abc',
      sessionToken: 'abc',
      token: 'abc',
      expiresAt: new Date(BEGIN),
      expires: new Date(BEGIN),
    }
    const user = { id: 'u', name: 'ada', email: 'ada@example.com' }
    const adapter = { getSessionAndUser: async () => [session, user] as [object, object], deleteSession() {} }
    const readers = [
      fromLucia({ adapter }),
      fromNextAuth({ cookie: 'token', adapter: { getSessionAndUser: () => ({ session, user }) } }),
      fromBetterAuth({ cookie: 'session_token', secret: SECRET, read: () => ({ session, user }) }),
    ]
    for (const reader of readers) {
      expect((await reader.read('abc'))?.expiresAt).toBe(BEGIN)
      expect(await reader.read('ABC')).toBeNull()
    }
  })
})
