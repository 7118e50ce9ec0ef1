// What each reader makes of a cookie and of a record: which are genuine, whose they are, and how long they live. Tokens and
// seals of the real packages are asked in test/libraries/import.
import { createHmac } from 'node:crypto'
import { SessionStoreError } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import {
  type CallbackStore,
  fromBetterAuth,
  fromCookieSession,
  fromExpressSession,
  fromFastifySession,
  fromIronSession,
  fromKoaSession,
  fromLucia,
  fromNextAuth,
  type OldSession,
  type OldSessions,
  signedId,
} from 'coatcheck/import'
import { describe, expect, it } from 'vitest'
import { BEGIN, connectSid, HOUR, MINUTE, replacement, SECRET } from '../support/old-sessions.ts'
import { onlyHost } from '../support/only-host.ts'

const hmac = (text: string, key: string | Uint8Array, algorithm = 'sha256') =>
  createHmac(algorithm, key).update(text).digest('base64').replace(/=+$/, '')
const signed = (id: string, secret = SECRET, algorithm = 'sha256') => `${id}.${hmac(id, secret, algorithm)}`
const held = (content: unknown) => Buffer.from(JSON.stringify(content)).toString('base64')
/** A cookie and its signature beside it, as keygrip makes it. */
const keygrip = (value: string, key = SECRET, name = 'koa.sess') =>
  `${name}=${value}; ${name}.sig=${hmac(`${name}=${value}`, key, 'sha1').replaceAll('/', '_').replaceAll('+', '-')}`
const data = { userId: '42', name: 'ada' }
const user = { id: '42', name: 'ada', email: 'ada@example.com' }

/** A node of the new service that imports what this reader finds. */
function nodeOver(from: OldSessions<any>, options: object = {}) {
  const world = replacement()
  const toLogin = (found: any) => ({ user: { id: 42n, name: found.name ?? found.user.name } })
  return { ...world, ...world.node({ importer: { from, toLogin, ...options } }) }
}
const read = (): OldSession<object> => ({ data })

/** A store of the callback shape, which may answer in each way that such stores have. */
const storeOf = (
  answer: (callback: (error: unknown, value?: unknown) => void, id: string) => unknown,
): CallbackStore => ({
  get: (id, callback) => answer(callback, id),
  destroy: (_, callback) => callback(),
})

interface Reader {
  readonly what: string
  /** `asked`: for each ID that its store is asked about, or told to remove. */
  readonly from: (asked: (what: string) => void) => OldSessions<any>
  readonly genuine: readonly string[]
  readonly refused: readonly string[]
  readonly asked?: string
  readonly removed: readonly string[]
}
const callbacks = (asked: (what: string) => void, more: object = {}): CallbackStore => ({
  get(id, callback) {
    asked(id)
    callback(null, { ...data, ...more })
  },
  destroy(id, callback) {
    asked(`-${id}`)
    callback()
  },
})

const EXPRESS = `s:${signed('an-old-id')}`
const SHA512 = `p:${encodeURIComponent(signed('an-old-id', SECRET, 'sha512'))}`
const KOA = held({ ...data, _expire: BEGIN + HOUR, _maxAge: 2 * HOUR })
const GENUINE = keygrip(KOA)
const COOKIE_SESSION = keygrip(held(data), SECRET, 'session')
const BETTER_AUTH = '__Secure-better-auth.session_token'
// Of "an-old-id", by sha256sum.
const HASH = 'eec1a310a4cb4aa05ed0895003264e005a6feb7aa22f64a22367bf808a9e1d43'

const READERS: Reader[] = [
  {
    what: 'express-session',
    from: asked => fromExpressSession({ secret: ['the next secret', SECRET], store: callbacks(asked) }),
    genuine: [
      ...[EXPRESS, encodeURIComponent(EXPRESS), `"${EXPRESS}"`, `"${encodeURIComponent(EXPRESS)}"`].map(
        value => `connect.sid=${value}`,
      ),
      `connect.sid=x; connect.sid=${EXPRESS}`,
      `connect.sid=${EXPRESS}; connect.sid=s%3Ax.y`,
      `connect.sid=${EXPRESS}; connect.sid=${EXPRESS}`,
      connectSid('an-old-id', 'the next secret'),
    ],
    refused: [
      ...[`"${EXPRESS}`, `${EXPRESS}"`, '"', '""', `${EXPRESS}%`, `${EXPRESS}%E0%A4%A`, EXPRESS.slice(2)],
      ...[`j:${EXPRESS.slice(2)}`, 'an-old-id', 's%3Aan-old-id', 's%3Aan-old-id.', EXPRESS.slice(0, -3), `${EXPRESS}A`],
      ...[`s:an-old-idx.${hmac('an-old-id', SECRET)}`, `s:${signed('')}`, `s:${signed('an-old-id', 'guessed')}`],
      `s:${'A'.repeat(8192)}`,
    ].map(value => `connect.sid=${value}`),
    asked: 'an-old-id',
    removed: ['connect.sid'],
  },
  {
    what: '@fastify/session',
    from: asked => fromFastifySession({ secret: SECRET, store: callbacks(asked) }),
    genuine: [`sessionId=${signed('an-old-id')}`],
    refused: [`sessionId=${signed('an-old-id', 'guessed')}`, `sessionId=s:${signed('an-old-id')}`],
    asked: 'an-old-id',
    removed: ['sessionId'],
  },
  {
    what: '@fastify/session with a prefix, an algorithm and a name of its own',
    from: asked =>
      fromFastifySession({
        secret: SECRET,
        store: callbacks(asked, { sessionId: 'an-old-id', encryptedSessionId: 'x' }),
        cookie: { name: 'sid', path: '/app', domain: 'example.com' },
        cookiePrefix: 'p:',
        algorithm: 'sha512',
      }),
    genuine: [`sid=${SHA512}`],
    refused: [
      `sid=${SHA512.slice(2)}`,
      `sid=q${SHA512.slice(1)}`,
      `sid=p:${signed('an-old-id')}`,
      'sid=%',
      `sessionId=${SHA512}`,
    ],
    asked: 'an-old-id',
    removed: ['sid'],
  },
  {
    what: 'koa-session in the cookie',
    from: () => fromKoaSession({ keys: ['the next key', SECRET] }),
    genuine: [
      // Several, so that + and / of base64 occur in a signature.
      ...Array.from({ length: 8 }, (_, at) => keygrip(held({ ...data, at }), at % 2 ? 'the next key' : SECRET)),
      GENUINE.replace(KOA, `"${KOA}"`),
      `${GENUINE}; koa.sess.sig=planted`,
      `koa.sess.sig=planted; koa.sess=planted; ${GENUINE}`,
    ],
    refused: [
      GENUINE.split(';')[0]!,
      keygrip(KOA, 'guessed'),
      GENUINE.replace('koa.sess=', 'koa.sess=x'),
      GENUINE.replace('koa.sess=', 'koa.sess=x').replace(';', '";'),
      GENUINE.replace('koa.sess.sig=', 'koa.sess.sig=x'),
      keygrip(''),
      keygrip('').replace('koa.sess=', 'koa.sess=""'),
    ],
    removed: ['koa.sess', 'koa.sess.sig'],
  },
  {
    what: 'koa-session with a store',
    from: asked =>
      fromKoaSession({
        keys: SECRET,
        store: {
          async get(id, ...more) {
            expect(more).toStrictEqual([0, { rolling: false, ctx: undefined }])
            asked(id)
            return { ...data, _expire: BEGIN + HOUR, _session: true, _requireSave: true }
          },
          async destroy(id, ...more) {
            expect(more).toStrictEqual([{ ctx: undefined }])
            asked(`-${id}`)
          },
        },
        cookie: { name: 'sess', domain: 'example.com' },
      }),
    genuine: [keygrip('an-old-id', SECRET, 'sess')],
    refused: [keygrip('an-old-id', 'guessed', 'sess'), keygrip('an-old-id')],
    asked: 'an-old-id',
    removed: ['sess', 'sess.sig'],
  },
  {
    what: 'cookie-session',
    from: () => fromCookieSession({ keys: SECRET }),
    genuine: [COOKIE_SESSION],
    refused: [COOKIE_SESSION.split(';')[0]!, keygrip(held(data), 'guessed', 'session')],
    removed: ['session', 'session.sig'],
  },
  {
    what: 'better-auth',
    from: asked =>
      fromBetterAuth({
        secret: SECRET,
        cookie: BETTER_AUTH,
        read(token) {
          asked(token)
          return { session: { userId: '42' }, user }
        },
        destroy: token => asked(`-${token}`),
      }),
    genuine: [`${BETTER_AUTH}=${encodeURIComponent(`${signed('an-old-id')}=`)}`],
    refused: [`${BETTER_AUTH}=${signed('an-old-id', 'guessed')}`, `${BETTER_AUTH}=%`],
    asked: 'an-old-id',
    removed: [BETTER_AUTH, '__Secure-better-auth.session_data', '__Secure-better-auth.dont_remember'],
  },
  ...[false, true].map(
    (hashed): Reader => ({
      what: hashed ? 'the code of Lucia’s site' : 'Lucia',
      from: asked =>
        fromLucia({
          hashed,
          adapter: {
            async getSessionAndUser(id): Promise<[object, object | null]> {
              asked(id)
              return [{ expiresAt: new Date(BEGIN + HOUR) }, id === 'orphan' ? null : user]
            },
            deleteSession: id => asked(`-${id}`),
          },
        }),
      genuine: ['auth_session=an-old-id', 'auth_session=%61n-old-id'],
      refused: ['auth_session=%'],
      asked: hashed ? HASH : 'an-old-id',
      removed: ['auth_session'],
    }),
  ),
]

describe.each(READERS)('a cookie of $what', ({ from, genuine, refused, asked, removed }) => {
  it('that is genuine logs its user in, and goes with its record when the browser comes with ours', async () => {
    for (const cookie of genuine) {
      const ids: string[] = []
      const { ask, told } = nodeOver(from(id => ids.push(id)))
      const { name, next } = await ask(cookie)
      expect(name, cookie).toBe('ada')
      expect(new Set(ids), cookie).toEqual(new Set(asked ? [asked] : []))
      expect((await ask(next())).removed, cookie).toEqual(removed)
      expect(ids.at(-1), cookie).toBe(asked && `-${asked}`)
      expect(told).toEqual([])
    }
  })

  it('that is not genuine counts for nothing, and neither store is asked', async () => {
    for (const cookie of refused) {
      const ids: string[] = []
      const { ask, store } = nodeOver(from(id => ids.push(id)))
      expect(await ask(cookie), cookie).toMatchObject({ name: null, removed: [] })
      expect([ids, store.calls], cookie).toEqual([[], []])
    }
  })
})

it.each(READERS.filter(({ what }) => /^express|^@fastify\/session$|^koa-session with|^better-auth/.test(what)))(
  'the old store of $what and this one together do not lead to the new session: its secret has the signature',
  ({ from, genuine, asked }) => {
    const [first, ...others] = genuine[0]!.split('; ').map(pair => /^([^=]*)=(.*)$/.exec(pair)!.slice(1))
    const valuesOf = (name: string) => others.filter(([own]) => own === name).map(([, value]) => value!)
    const found = from(() => {}).parse!(first![1]!, valuesOf)
    expect(found).toEqual({ id: asked, secret: expect.stringMatching(new RegExp(`^${asked}\\..{20,}$`)) })
  },
)

it.each([
  ['fromFastifySession', READERS[2]!],
  ['fromKoaSession', READERS[4]!],
  ['fromCookieSession', READERS[5]!],
])('toLogin gets what the application kept, and nothing of the library: %s', async (_, { from, genuine }) => {
  const seen: unknown[] = []
  await nodeOver(
    from(() => {}),
    { toLogin: (found: object) => void seen.push(found) },
  ).ask(genuine[0]!)
  expect(seen).toEqual([data])
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
    expect(() => signedId('a.b', [])).toThrow('signedId: expected the secret')
  })

  it('that are changed in the array afterwards change nothing', async () => {
    const secret = [SECRET]
    const from = fromExpressSession({ secret, store: storeOf(callback => callback(null, data)) })
    secret[0] = 'of an attacker'
    expect((await nodeOver(from).ask(connectSid('an-old-id'))).name).toBe('ada')
    expect((await nodeOver(from).ask(connectSid('an-old-id', 'of an attacker'))).name).toBeNull()
  })
})

describe('a signed ID', () => {
  it('is what stands before the last dot if one of the secrets has signed it, with or without padding', () => {
    const bytes = new Uint8Array([1, 2, 3])
    for (const secret of ['a', bytes])
      for (const padding of ['', '=', '=='])
        expect(signedId(`i.d.${hmac('i.d', secret)}${padding}`, ['b', secret])).toEqual({
          id: 'i.d',
          secret: `i.d.${hmac('i.d', secret)}`,
        })
    expect(signedId(`id.${hmac('id', 'a', 'sha512')}`, 'a', 'sha512')?.id).toBe('id')
  })

  it('is none where the value is not signed so', () => {
    const signature = hmac('id', 'a')
    for (const text of [
      ...['', 'id', '.', 'id.', `.${hmac('', 'a')}`, `id${signature}`, `ID.${signature}`, `id.${signature}===`],
      ...[`id.=${signature}`, `id.${signature}x`, `id.${hmac('id', 'a', 'sha512')}`],
    ])
      expect(signedId(text, 'a'), text).toBeNull()
  })
})

describe('the age of an old session', () => {
  it('of koa-session counts from the last visit, where that is known, and its end is _expire', async () => {
    const own = { _expire: BEGIN + HOUR, _maxAge: 2 * HOUR }
    const from = () => fromKoaSession({ keys: SECRET })
    const ask = (content: object) => nodeOver(from()).ask(keygrip(held({ ...data, ...content })))
    expect((await ask(own)).session?.createdAt).toBe(BEGIN - HOUR)
    expect((await ask({ _expire: BEGIN })).name).toBeNull()
    for (const content of [{}, { _maxAge: HOUR }]) expect((await ask(content)).session?.createdAt).toBe(BEGIN)
    for (const _maxAge of ['session', '7200000', 0, -HOUR])
      expect(await from().read(held({ ...data, ...own, _maxAge }))).toEqual({
        data,
        seenAt: null,
        expiresAt: own._expire,
      })
  })

  it('of better-auth is that of its login, from a row or from JSON; one that has expired, or has no user, is none', async () => {
    const times = { createdAt: new Date(BEGIN - HOUR), expiresAt: new Date(BEGIN + HOUR) }
    const ask = (answer: unknown) =>
      nodeOver(fromBetterAuth({ secret: SECRET, cookie: BETTER_AUTH, read: () => answer })).ask(
        `${BETTER_AUTH}=${signed('t')}`,
      )
    const found = { session: times, user }
    for (const answer of [found, JSON.stringify(found)])
      expect((await ask(answer)).session).toMatchObject({ createdAt: BEGIN - HOUR, user: { id: 42n, name: 'ada' } })
    const expired = { session: { ...times, expiresAt: new Date(BEGIN) }, user }
    for (const answer of [expired, null, undefined, {}, 'null', { session: times }])
      expect((await ask(answer)).session).toBeNull()
  })

  it('of Lucia is none where its user is absent', async () => {
    expect((await nodeOver(READERS.at(-2)!.from(() => {})).ask('auth_session=orphan')).session).toBeNull()
  })
})

describe('a cookie or a record that holds', () => {
  const readers: [string, (text: string) => { from: OldSessions<any>; cookie: string }][] = [
    [
      'koa-session',
      text => ({ from: fromKoaSession({ keys: SECRET }), cookie: keygrip(Buffer.from(text).toString('base64')) }),
    ],
    [
      'cookie-session',
      text => ({
        from: fromCookieSession({ keys: SECRET }),
        cookie: keygrip(Buffer.from(text).toString('base64'), SECRET, 'session'),
      }),
    ],
    [
      'better-auth',
      text => ({
        from: fromBetterAuth({ secret: SECRET, cookie: 'b', read: () => text }),
        cookie: `b=${signed('t')}`,
      }),
    ],
    [
      'express-session',
      text => ({
        from: fromExpressSession({ secret: SECRET, store: storeOf(callback => callback(null, JSON.parse(text))) }),
        cookie: connectSid('an-old-id'),
      }),
    ],
  ]
  it.each(readers)('no object is no session, and one that holds no JSON is told: %s', async (_, reader) => {
    for (const text of ['[]', 'null', '"ada"', '1']) {
      const { from, cookie } = reader(text)
      const { ask, told } = nodeOver(from)
      expect((await ask(cookie)).session, text).toBeNull()
      expect(told).toEqual([])
    }
    const { from, cookie } = reader('{"name":')
    const { ask, told } = nodeOver(from)
    const asked = await ask(cookie).catch(({ status }) => ({ session: status }))
    expect([null, 503]).toContain(asked.session)
    expect(told).toHaveLength(1)
  })
})

describe('a store of the old service', () => {
  const ask = (answer: Parameters<typeof storeOf>[0]) =>
    nodeOver(fromExpressSession({ secret: SECRET, store: storeOf(answer) })).ask(connectSid('an-old-id'))
  const withCookie = (cookie: object) => ask(callback => callback(null, { ...data, cookie }))
  const expires = BEGIN + HOUR

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

  it('has no session where its file is absent, or where it answers nothing', async () => {
    const absent = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' })
    expect((await ask(callback => callback(absent))).name).toBeNull()
    for (const answer of [undefined, null, '']) expect((await ask(callback => callback(null, answer))).name).toBeNull()
  })

  it('tells when a session was last used by a date, its text, milliseconds or a BigInt', async () => {
    for (const form of [
      new Date(expires),
      new Date(expires).toISOString(),
      new Date(expires).toUTCString(),
      new Date(expires).toISOString().replace('T', ' ').replace('Z', '+00:00'),
      expires,
      expires + 0.5,
      BigInt(expires),
      String(expires),
    ])
      expect((await withCookie({ expires: form, originalMaxAge: 2 * HOUR })).session?.createdAt).toBe(BEGIN - HOUR)
  })

  it('that says no end has sessions that live as long as ours, and no age where it says no maxAge', async () => {
    for (const cookie of [undefined, null, { expires: null }, { expires: false }, 'text'])
      expect((await withCookie(cookie as object)).session?.expiresAt).toBe(BEGIN + 30 * MINUTE)
    expect((await withCookie({ expires: null, originalMaxAge: HOUR })).session?.createdAt).toBe(BEGIN)
    for (const originalMaxAge of [null, '7200000', 0, -HOUR])
      expect((await withCookie({ expires, originalMaxAge })).session?.createdAt).toBe(BEGIN)
  })

  it('is an outage where the end is no instant: it would pass for unknown, and the session would live', async () => {
    const local = new Date(expires).toISOString().slice(0, -1)
    for (const form of [true, Number.NaN, Number.POSITIVE_INFINITY, new Date(Number.NaN), {}, '', 'soon', local])
      await expect(withCookie({ expires: form }), String(form)).rejects.toMatchObject({
        status: 503,
        cause: { message: expect.stringContaining('cookie.expires: expected') },
      })
  })

  it('that answers a session says that it lives: stores prolong one without its text', async () => {
    for (const over of [BEGIN, BEGIN - HOUR, new Date(BEGIN - HOUR).toISOString()])
      expect((await withCookie({ expires: over })).name).toBe('ada')
  })
})

describe('a reader of one’s own', () => {
  it('has the value of the cookie for an ID and a secret, where it says nothing else', async () => {
    const ids: string[] = []
    const cookie = { name: '__Secure-token', path: '/app', domain: 'example.com' }
    const world = nodeOver({
      cookie,
      read(id) {
        ids.push(id)
        return read()
      },
    })
    const { name, session, next } = await world.ask('__Secure-token=a%20"b')
    expect(name).toBe('ada')
    expect(new Set(ids)).toEqual(new Set(['a%20"b']))
    expect((await world.open(next())).setCookie[0]).toMatch(
      /^__Secure-token=; Max-Age=0; Domain=example.com; Path=\/app;.*Secure/,
    )
    expect((await world.ask('__Secure-token=a%20"b')).session?.secret).toBe(session?.secret)
    expect(world.told, 'there is no record to be removed').toEqual([])
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
    const world = nodeOver({ cookie: 'token', parse: value => ({ id: value.slice(0, 3) }), read })
    const first = await world.ask('token=abc-secret')
    expect(first.name).toBe('ada')
    expect((await world.ask('token=abc-secret')).session?.secret).toBe(first.session?.secret)
    expect((await world.ask('token=abc-guessed')).name).toBeNull()
  })

  it('says null or an error for a cookie that is not genuine: no store is asked, and the request goes on', async () => {
    for (const ticket of [null, undefined, {}, { id: '' }, { id: 42 }, { secret: 'a' }]) {
      const world = nodeOver({ cookie: 'token', parse: () => ticket as never, read })
      expect((await world.ask('token=a')).name).toBeNull()
      expect(world.store.calls).toEqual([])
    }
    const { ask, store } = nodeOver({ cookie: 'token', parse: value => ({ id: decodeURIComponent(value) }), read })
    for (const cookie of ['token=%', 'token=%E0%A4%A', 'token=%; theme=dark', 'token='])
      expect(await ask(cookie)).toMatchObject({ name: null, removed: [] })
    expect(store.calls).toEqual([])
    expect((await ask('token=%; token=good')).name).toBe('ada')
  })

  it('is asked for eight values of 4096 characters at most, once each', async () => {
    const checked: string[] = []
    const parse = (value: string) => {
      checked.push(value)
      return null
    }
    const { importer } = nodeOver({ cookie: 'koa:sess', parse, read: () => null })
    const ask = async (...values: unknown[]) => {
      checked.length = 0
      await importer.import(values.map(value => `koa:sess=${value}`).join('; '), () => ({
        get: async () => null,
        onLeave: () => {},
      }))
      return checked.length
    }
    expect(await ask(...Array(1000).keys())).toBe(8)
    expect([await ask('a'.repeat(4096)), await ask('a'.repeat(4097))]).toEqual([1, 0])
  })

  it('has a cookie in any number of pieces joined, and removed; of two that claim one place it believes neither', async () => {
    const ids: string[] = []
    const { ask, open } = nodeOver({
      cookie: 'token',
      isChunked: true,
      read(id) {
        ids.push(id)
        return read()
      },
    })
    const pieces = Array.from({ length: 7 }, (_, n) => `token.${n}=${'x'.repeat(100)}`)
    expect((await ask([...pieces, 'token.3=planted'].join('; '))).name).toBeNull()
    expect(ids).toEqual([])
    const first = await ask(pieces.join('; '))
    expect(first.name).toBe('ada')
    expect(new Set(ids)).toEqual(new Set(['x'.repeat(700)]))
    const { setCookie } = await open(first.next())
    expect(setCookie.map(line => line.split('=', 1)[0])).toEqual(['token', ...pieces.map(each => each.slice(0, 7))])
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
    const ask = (times: object, more: object = {}) =>
      nodeOver({ cookie: 'token', read: () => ({ data, ...times }), ...more }).ask('token=a')
    for (const times of [{ createdAt: 0 }, { seenAt: 0 }, { expiresAt: 0 }, { expiresAt: BEGIN }])
      expect((await ask(times)).name).toBeNull()
    expect((await ask({ expiresAt: BEGIN }, { isEndedByStore: true })).name, 'unless its store alone ends it').toBe(
      'ada',
    )
    expect((await ask({ createdAt: BEGIN - 10.5 })).session?.createdAt).toBe(BEGIN - 11)
    for (const name of ['createdAt', 'seenAt', 'expiresAt']) {
      for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1800000000000', new Date(), true])
        await expect(ask({ [name]: value }), `${name}: ${value}`).rejects.toThrow(
          `sessionImporter: ${name}: expected epoch milliseconds or null, got`,
        )
      await expect(ask({ [name]: 1_900_000_000 })).rejects.toThrow(
        `${name}: expected epoch milliseconds, got 1900000000, which looks like seconds: multiply by 1000`,
      )
    }
  })

  it('that throws what is no error is an outage, and one that finds no JSON is told', async () => {
    const throwing = (thrown: unknown) =>
      nodeOver({
        cookie: 'token',
        read: () => {
          throw thrown
        },
      })
    for (const thrown of [null, undefined, 'text'])
      await expect(throwing(thrown).ask('token=a')).rejects.toMatchObject({ status: 503, outcome: 'not-applied' })
    const world = throwing(new SyntaxError('Unexpected token hunter2'))
    expect((await world.ask('token=a')).name).toBeNull()
    expect(world.told.map(({ message }) => message)).toEqual(['read: an old session is no JSON, and was left alone'])
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

it('a row that names another ID is no session: a database that compares without case finds one for each spelling', async () => {
  const date = new Date(BEGIN)
  const session = { id: 'abc', sessionToken: 'abc', token: 'abc', expiresAt: date, expires: date }
  const adapter = { getSessionAndUser: async () => [session, user] as [object, object], deleteSession() {} }
  for (const reader of [
    fromLucia({ adapter }),
    fromNextAuth({ cookie: 'token', adapter: { getSessionAndUser: () => ({ session, user }) } }),
    fromBetterAuth({ cookie: 'session_token', secret: SECRET, read: () => ({ session, user }) }),
  ]) {
    expect((await reader.read('abc'))?.expiresAt).toBe(BEGIN)
    expect(await reader.read('ABC')).toBeNull()
  }
})

describe('options that no old service has', () => {
  const store = storeOf(() => null)
  const express = (options: object) => () => fromExpressSession({ secret: 'a', store, ...options } as never)
  const fastify = (options: object) => () => fromFastifySession({ secret: 'a', store, ...options } as never)
  const password = 'of 32 characters, or of more of them'
  const adapter = { getSessionAndUser: async () => [null, null] as [null, null], deleteSession() {} }
  const next = { getSessionAndUser: () => null }

  it.each<[string, () => unknown]>([
    ['fromExpressSession: "key" is not an option; it is called cookie', express({ key: 'sid' })],
    ['fromExpressSession: "name" is not an option; it is called cookie', express({ name: 'sid' })],
    ['fromExpressSession: secret: expected the secret', () => fromExpressSession({ store } as never)],
    ['fromExpressSession: store: expected the store', () => fromExpressSession({ secret: 'a' } as never)],
    ['store: expected the store that the old service has', express({ store: { destroy() {} } })],
    ['got null', express({ store: null })],
    ["cookie: expected the name of a cookie, or { name, path, domain }, such as 'connect.sid'", express({ cookie: 5 })],
    ['cookie: expected the name of a cookie', express({ cookie: { name: 5 } })],
    ['fromFastifySession: "cookieName" is not an option; it is called cookie', fastify({ cookieName: 'sid' })],
    ['cookiePrefix: expected text, got 5', fastify({ cookiePrefix: 5 })],
    ['algorithm: expected text, got null', fastify({ algorithm: null })],
    ['fromFastifySession: store: expected the store that the old service has', fastify({ store: { get() {} } })],
    ['fromFastifySession: secret: expected', fastify({ secret: '' })],
    [
      'fromKoaSession: "key" is not an option; it is called cookie',
      () => fromKoaSession({ keys: 'k', key: 's' } as never),
    ],
    ['fromKoaSession: keys: expected the secret', () => fromKoaSession({} as never)],
    ['fromKoaSession: keys: expected', () => fromKoaSession({ keys: [] })],
    ['they are called keys', () => fromKoaSession({ secret: 'k' } as never)],
    ['fromKoaSession: store: expected the store', () => fromKoaSession({ keys: 'k', store: {} as never })],
    ['fromCookieSession: keys: expected the secret', () => fromCookieSession({} as never)],
    ['"secret" is not an option; it is called keys', () => fromCookieSession({ secret: SECRET } as never)],
    [
      "fromNextAuth: expected adapter (strategy 'database') or secret (strategy 'jwt'), one of both",
      () => fromNextAuth({ cookie: 'c' } as never),
    ],
    ['one of both', () => fromNextAuth({ cookie: 'c', secret: SECRET, adapter: next } as never)],
    [
      'fromNextAuth: adapter: expected an adapter with getSessionAndUser(token), got an object',
      () => fromNextAuth({ cookie: 'c', adapter: {} }),
    ],
    [
      'fromNextAuth: secret: expected text or bytes that are not empty',
      () => fromNextAuth({ cookie: 'c', secret: '' }),
    ],
    ['fromNextAuth: secret: expected the secret', () => fromNextAuth({ cookie: 'c', secret: null } as never)],
    ['fromNextAuth: cookie: expected the name of a cookie', () => fromNextAuth({ secret: SECRET } as never)],
    ['fromIronSession: password: expected the old service', () => fromIronSession({ cookie: 'iron' } as never)],
    ['of at least 32 characters', () => fromIronSession({ cookie: 'iron', password: { 1: password, 2: 'short' } })],
    ['of at least 32 characters', () => fromIronSession({ cookie: 'iron', password: {} })],
    [
      '"cookieName" is not an option; it is called cookie',
      () => fromIronSession({ cookieName: 'iron', password } as never),
    ],
    [
      'fromLucia: adapter: expected an adapter with getSessionAndUser(id) and deleteSession(id)',
      () => fromLucia({} as never),
    ],
    ['fromLucia: hashed: expected true or false', () => fromLucia({ adapter, hashed: 1 as never })],
    ['fromBetterAuth: secret: expected the secret', () => fromBetterAuth({ cookie: 'c', read: () => null } as never)],
    ['fromBetterAuth: read: expected a function', () => fromBetterAuth({ cookie: 'c', secret: SECRET } as never)],
  ])('are refused: %s', (message, make) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it('are told without what they hold', () => {
    for (const short of [SECRET, { 1: SECRET }, [SECRET]])
      expect(() => fromIronSession({ cookie: 'iron', password: short as never })).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining(SECRET) }),
      )
  })
})
