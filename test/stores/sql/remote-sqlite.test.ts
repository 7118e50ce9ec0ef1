// SQLite on a network: what becomes of calls that the network, the server or the deadline cut off, and what each call costs.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { SessionManager, SessionStoreError, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { type D1Client, D1Store } from 'coatcheck/stores/d1'
import { LibsqlStore } from 'coatcheck/stores/libsql'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startD1 } from '../../services/d1.ts'
import { describeEngine } from '../../services/engines.ts'
import { type FaultProxy, startProxy } from '../../services/proxy.ts'
import { REMOTE_SQLITE, type RemoteSqliteServer, startRemoteSqlite } from '../../services/remote-sqlite.ts'
import { type SqldServer, startSqld } from '../../services/sqld.ts'
import { soon, within } from '../../support/deadlines.ts'
import { anonymous, isLive, NOW, newKey, newWriteId, record } from '../../support/sql/records.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
let user = 9000
const ofNewUser = () => record({ userId: `${++user}` })
const change = () => ({ data: '"late"', seenAt: NOW + 5, expiresAt: NOW + 9e6, writeId: newWriteId() })
const forward = { salt: 'c2FsdA', until: NOW }

/** The error of a call that has to fail. */
const failure = (call: Promise<unknown>): Promise<SessionStoreError> =>
  call.then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => {
      expect(error).toBeInstanceOf(SessionStoreError)
      return error
    },
  )

type Write = (store: Store, one: SessionRecord, other: SessionRecord, deadline: number) => Promise<unknown>
const WRITES: Record<string, Write> = {
  update: (store, one, _, deadline) => store.update(one.key, 1, change(), { now: NOW, deadline }),
  touch: (store, one, _, deadline) => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline }),
  logout: (store, one, _, deadline) => store.delete(one.key, { now: NOW, deadline }),
  login: (store, _, other, deadline) => store.create(other, {}, { now: NOW, deadline }),
  'login at a limit': (store, _, other, deadline) =>
    store.create(other, { limit: { max: 1, onLimit: 'end-oldest' } }, { now: NOW, deadline }),
  'new ID': (store, one, other, deadline) => store.replace(one.key, 1, other, {}, { now: NOW, deadline }),
  'new ID with a forward': (store, one, other, deadline) =>
    store.replace(one.key, 1, other, { forward }, { now: NOW, deadline }),
  'logout everywhere': (store, one, _, deadline) =>
    store.deleteUser(
      one.userId!,
      { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 },
      { now: NOW, deadline },
    ),
}

/** What a repeated call gets, where the first one was run: a logout has nothing left to end. */
const FIRST_ANSWERS: Record<string, unknown> = {
  update: 'updated',
  touch: 'touched',
  logout: false,
  'logout everywhere': 0,
}

for (const engine of REMOTE_SQLITE)
  describeEngine(engine, `SQLite on a network with ${engine}`, () => {
    let server: RemoteSqliteServer
    let store: ReturnType<RemoteSqliteServer['open']>
    beforeAll(async () => {
      server = await startRemoteSqlite(engine)
      store = server.open()
      await store.migrate()
    })
    afterAll(() => server?.stop())

    it('leaves the second old session as it is when a new ID is asked for again under another old key', async () => {
      const [one, second, next] = [ofNewUser(), ofNewUser(), ofNewUser()]
      for (const each of [one, second]) await store.create(each, {}, { now: NOW })
      const repeated = { ...next, userId: one.userId }
      expect(await store.replace(one.key, 1, repeated, { forward }, { now: NOW })).toMatchObject({ outcome: 'created' })
      expect(await store.replace(second.key, 1, repeated, { forward }, { now: NOW })).toMatchObject({
        outcome: 'created',
      })
      expect(await store.read(second.key, { now: NOW })).toEqual(second)
      expect(await store.read(one.key, { now: NOW })).toMatchObject({ movedTo: next.key })
      expect(await store.replace(second.key, 1, repeated, {}, { now: NOW })).toMatchObject({ outcome: 'created' })
      expect(await isLive(store, second.key)).toBe(true)
    })

    it('ends no session a second time when a login at a limit is repeated', async () => {
      const [old, next] = [ofNewUser(), ofNewUser()]
      const login = { ...next, userId: old.userId }
      const limit = { max: 1, onLimit: 'end-oldest' } as const
      await store.create(old, {}, { now: NOW })
      expect(await store.create(login, { limit }, { now: NOW })).toEqual({ outcome: 'created', ended: [old.key] })
      const later = record({ userId: old.userId })
      await store.create(later, {}, { now: NOW })
      expect(await store.create(login, { limit }, { now: NOW })).toMatchObject({ outcome: 'created' })
      expect(await isLive(store, later.key)).toBe(true)
    })

    it('keeps a write ID as it was given, also that of a record that another replaced', async () => {
      const [one, next] = [ofNewUser(), ofNewUser()]
      await store.create(one, {}, { now: NOW })
      await store.replace(one.key, 1, { ...next, userId: one.userId }, { forward }, { now: NOW })
      expect(await store.read(next.key, { now: NOW })).toEqual({ ...next, userId: one.userId })
      expect(await server.number(`SELECT count(*) FROM coatcheck_sessions WHERE write_id LIKE '!%'`)).toBe(0)
    })

    it.each(Object.keys(WRITES))('writes nothing of a %s when one statement of it fails', async name => {
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await store.create(one, {}, { now: NOW })
      await store.update(one.key, 1, { ...change(), data: '"before"', writeId: newWriteId() }, { now: NOW })
      const before = await store.read(one.key, { now: NOW })
      // Whatever is written, the last statement that touches a row of this user is the one that fails.
      const abort = (verb: string, row: string) =>
        server.run(`CREATE TRIGGER "no ${verb}" AFTER ${verb} ON coatcheck_sessions WHEN ${row}.user_id = '${one.userId}'
          BEGIN SELECT RAISE(ABORT, 'not today'); END`)
      await abort('UPDATE', 'OLD')
      await abort('DELETE', 'OLD')
      try {
        const outcome = await WRITES[name]!(store, { ...one, version: 2 }, other, within(5000)).then(
          answer => JSON.stringify(answer),
          error => error.outcome,
        )
        expect(['not-applied', '"conflict"', '{"outcome":"conflict","ended":[]}']).toContain(outcome)
      } finally {
        for (const verb of ['UPDATE', 'DELETE']) await server.run(`DROP TRIGGER "no ${verb}"`)
      }
      expect(await store.read(one.key, { now: NOW })).toEqual(before)
      expect(await store.read(other.key, { now: NOW })).toBe(null)
      expect((await store.create(other, {}, { now: NOW })).outcome).toBe('created')
    })
  })

describeEngine('sqld', '@libsql/client on a broken network', () => {
  let server: SqldServer
  let proxy: FaultProxy
  let direct: LibsqlStore
  let requests = 0
  const open = (timeout = 60_000) => {
    const counted = (request: Request) => {
      requests += 1
      return fetch(request, { signal: AbortSignal.timeout(timeout) })
    }
    return new LibsqlStore(server.client({ url: `http://127.0.0.1:${proxy.port}`, fetch: counted }))
  }
  beforeAll(async () => {
    server = await startSqld()
    proxy = await startProxy(server.port)
    direct = new LibsqlStore(server.client())
    await direct.migrate()
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.stop()
  })

  it.each(Object.entries(WRITES))('sends a %s as one request', async (_, write) => {
    const store = open()
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    const one = ofNewUser()
    await direct.create(one, {}, { now: NOW })
    requests = 0
    await write(store, one, record({ userId: one.userId }), within(5000))
    expect(requests).toBe(1)
  })

  it('asks for the sessions of one turn of the event loop in one request', async () => {
    const store = open()
    const records = Array.from({ length: 300 }, () => anonymous())
    for (const each of records) await direct.create(each, {}, { now: NOW })
    const heard: unknown[] = []
    const listener = (told: unknown) => heard.push(told)
    subscribe('coatcheck:shared-read', listener)
    requests = 0
    const answers = await Promise.all([...records, anonymous()].map(({ key }) => store.read(key, { now: NOW })))
    unsubscribe('coatcheck:shared-read', listener)
    expect(answers).toEqual([...records, null])
    expect(heard).toEqual([
      { keys: 256, reads: 256 },
      { keys: 45, reads: 45 },
    ])
    expect(requests).toBe(2)
  })

  it.each(Object.entries(WRITES))(
    'does not run a %s that was given up in a stalled network when the network heals',
    async (_, write) => {
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await direct.create(one, {}, { now: NOW })
      const store = open()
      await store.touch(newKey(), NOW, NOW, { now: NOW })
      proxy.stall()
      expect(await failure(write(store, one, other, within(250)))).toMatchObject({ status: 503, outcome: 'unknown' })
      await pause(50)
      await proxy.heal()
      expect(await direct.read(one.key, { now: NOW })).toEqual(one)
      expect(await direct.read(other.key, { now: NOW })).toBe(null)
      expect((await direct.create(other, {}, { now: NOW })).outcome).toBe('created')
    },
  )

  it.each(Object.entries(WRITES))(
    'does not know of a %s whose answer was lost; repeated, it ends well',
    async (_, write) => {
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await direct.create(one, {}, { now: NOW })
      const store = open()
      await store.touch(newKey(), NOW, NOW, { now: NOW })
      const lost = proxy.loseAnswerTo('BEGIN')
      const error = await failure(write(store, one, other, within(5000)))
      await lost
      expect(error).toMatchObject({ status: 503, outcome: 'unknown' })
      const answer = (await write(store, one, other, within(5000))) as { outcome?: string } | string
      expect(['gone', 'stale-login']).not.toContain((answer as { outcome?: string }).outcome)
    },
  )

  it('loses no write when one of the clocks is set', async () => {
    const store = open()
    const one = ofNewUser()
    await store.create(one, {}, { now: NOW })
    const real = performance.now.bind(performance)
    performance.now = () => real() + 30_000
    try {
      expect(await store.update(one.key, 1, change(), { now: NOW, deadline: within(20_000) })).toBe('updated')
    } finally {
      performance.now = real
    }
    expect(await store.delete(one.key, { now: NOW, deadline: soon() })).toBe(true)
  })

  it('fails in time while the server stands still, and does none of it when it goes on', async () => {
    const one = ofNewUser()
    await direct.create(one, {}, { now: NOW })
    const store = open()
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    server.pause()
    try {
      const deadline = within(300)
      const calls = [
        store.read(one.key, { now: NOW, deadline }),
        store.delete(one.key, { now: NOW, deadline }),
        store.update(one.key, 1, change(), { now: NOW, deadline }),
      ]
      const [read, ...writes] = await Promise.all(calls.map(failure))
      expect(read).toMatchObject({ outcome: 'not-applied' })
      for (const error of writes) expect(error).toMatchObject({ outcome: 'unknown' })
    } finally {
      server.resume()
    }
    expect(await store.read(one.key, { now: NOW })).toEqual(one)
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it('refuses at once when so many calls have had no answer, and works on when they are over', async () => {
    const store = open(2000)
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    proxy.stall()
    const deadline = within(200)
    const touches = Array.from({ length: 256 }, () => failure(store.touch(newKey(), NOW, NOW, { now: NOW, deadline })))
    await Promise.all(touches)
    requests = 0
    const error = await failure(store.touch(newKey(), NOW, NOW, { now: NOW, deadline: within(60_000) }))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: expect.stringContaining('256 calls') } })
    expect(requests).toBe(0)
    await proxy.heal()
    await expect
      .poll(() => store.touch(newKey(), NOW, NOW, { now: NOW }).catch(() => ''), { timeout: 30_000 })
      .toBe('gone')
  })

  it('says that nothing was applied where the server is down, and goes on when it is back', async () => {
    const one = ofNewUser()
    await direct.create(one, {}, { now: NOW })
    await server.kill()
    expect(await failure(direct.delete(one.key, { now: NOW, deadline: soon() }))).toMatchObject({
      outcome: 'not-applied',
      cause: { cause: { code: 'ECONNREFUSED' } },
    })
    await failure(direct.read(one.key, { now: NOW, deadline: soon() }) as Promise<unknown>)
    await server.restart()
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it('says that a closed client is closed', async () => {
    const client = server.client()
    const store = new LibsqlStore(client)
    client.close()
    const calls = [store.read(newKey(), { now: NOW }), store.delete(newKey(), { now: NOW })]
    for (const error of await Promise.all(calls.map(failure)))
      expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: 'the client is closed' } })
  })
})

describeEngine('sqld', 'libSQL with tokens', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (rights: object) => {
    const text = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part(rights)}`
    return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`
  }
  const [all, none] = [token({ a: 'rw' }), token({ a: 'rw' }).split('.').slice(0, 2).join('.')]
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-token-'))
  const file = join(folder, 'key.pem')
  let server: SqldServer
  let direct: LibsqlStore
  beforeAll(async () => {
    writeFileSync(file, publicKey.export({ type: 'spki', format: 'pem' }))
    server = await startSqld(['--auth-jwt-key-file', file])
    direct = new LibsqlStore(server.client({ authToken: all }))
    await direct.migrate()
  })
  afterAll(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const wrong: Record<string, string | undefined> = {
    'no token': undefined,
    'a token signed by another': `${none}.${randomBytes(64).toString('base64url')}`,
    'a token whose time is over': token({ a: 'rw', exp: 1_700_000_000 }),
    'a token without a signature': `${none}.`,
  }
  it.each(Object.entries(wrong))('says that nothing was applied, and does not ask again, with %s', async (_, given) => {
    let requests = 0
    const client = server.client({
      ...(given === undefined ? {} : { authToken: given }),
      fetch: (request: Request) => {
        requests += 1
        return fetch(request)
      },
    })
    const heard: unknown[] = []
    const store = new LibsqlStore(client)
    const sessions = new SessionManager({ store, onEvent: event => heard.push(event) })
    const one = ofNewUser()
    await direct.create(one, {}, { now: NOW })
    requests = 0
    const errors = [
      await failure(store.read(one.key, { now: NOW }) as Promise<unknown>),
      await failure(store.delete(one.key, { now: NOW })),
      await failure(sessions.create({ user: { id: 1n, name: 'ada' } })),
      await failure(sessions.count()),
    ]
    await sessions.close()
    for (const error of errors)
      expect(error).toMatchObject({ status: 503, outcome: 'not-applied', cause: { code: 'SERVER_ERROR' } })
    // The client asks once for the version of the protocol.
    expect(requests).toBeLessThanOrEqual(errors.length + 1)
    expect(heard).not.toHaveLength(0)
    const told = inspect([errors, heard], { depth: Number.POSITIVE_INFINITY, showHidden: true })
    for (const secret of given?.split('.').filter(each => each !== '') ?? []) expect(told).not.toContain(secret)
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it('reads with a token that may only read, and says of each write that nothing was applied', async () => {
    const store = new LibsqlStore(server.client({ authToken: token({ a: 'ro' }) }))
    const one = ofNewUser()
    await direct.create(one, {}, { now: NOW })
    expect(await store.read(one.key, { now: NOW })).toEqual(one)
    for (const write of Object.values(WRITES)) {
      const error = await failure(write(store, one, record({ userId: one.userId }), within(5000)))
      expect(error).toMatchObject({ status: 503, outcome: 'not-applied' })
    }
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it('refuses a client with an embedded replica, whose reads are old, and does not name its token', () => {
    const client = server.client({ url: `file:${join(folder, 'replica.db')}`, syncUrl: server.url, authToken: all })
    let message = ''
    try {
      new LibsqlStore(client)
    } catch (error) {
      message = (error as Error).message
    }
    expect(message).toMatch(/^LibsqlStore expects a client .* got one that reads a file/)
    expect(message).not.toContain(all)
  })
})

describeEngine('sqld', 'libSQL beside transactions of the application', () => {
  let server: SqldServer
  let store: LibsqlStore
  beforeAll(async () => {
    server = await startSqld()
    // What was given up holds its place at the client until sqld answers it.
    store = new LibsqlStore(server.client({ concurrency: 20 }))
    await store.migrate()
  })
  afterAll(() => server?.stop())

  it.each(Object.entries(WRITES))(
    'fails in time while a transaction of the application holds the database, and does no %s afterwards',
    async (_, write) => {
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await store.create(one, {}, { now: NOW })
      const transaction = await server.client().transaction('write')
      try {
        await transaction.execute('SELECT 1')
        const error = await failure(write(store, one, other, within(300)))
        expect(error).toMatchObject({ status: 503 })
        expect(await store.read(one.key, { now: NOW })).toEqual(one)
      } finally {
        await transaction.rollback()
      }
      // After what was given up: writes come one after the other.
      await store.touch(newKey(), NOW, NOW, { now: NOW })
      expect(await store.read(one.key, { now: NOW })).toEqual(one)
      expect(await store.read(other.key, { now: NOW })).toBe(null)
    },
  )

  it('writes on when the server ends a transaction that its owner left open', async () => {
    const one = ofNewUser()
    await store.create(one, {}, { now: NOW })
    const transaction = await server.client().transaction('write')
    await transaction.execute('SELECT 1')
    expect(await store.delete(one.key, { now: NOW, deadline: within(25_000) })).toBe(true)
    await expect(transaction.commit()).rejects.toThrow()
    expect(await store.read(one.key, { now: NOW })).toBe(null)
  })
})

describeEngine('d1', 'D1 that answers late or not', () => {
  let server: Awaited<ReturnType<typeof startD1>>
  let direct: D1Store
  beforeAll(async () => {
    server = await startD1()
    direct = new D1Store(server.database)
    await direct.migrate()
  })
  afterAll(() => server?.stop())
  /** The binding, with something before or behind each batch. */
  const around = (batch: (send: () => ReturnType<D1Client['batch']>) => ReturnType<D1Client['batch']>): D1Client => ({
    prepare: sql => server.database.prepare(sql),
    batch: statements => batch(() => server.database.batch(statements)),
  })

  it.each(Object.entries(WRITES))('does not run a %s that was given up and comes late', async (_, write) => {
    const one = ofNewUser()
    const other = record({ userId: one.userId })
    await direct.create(one, {}, { now: NOW })
    let held: Promise<unknown> | null = null
    let came: unknown
    const late = around(async send => {
      await held
      const answer = send()
      if (held !== null) came = answer.catch(error => error)
      return answer
    })
    const store = new D1Store(late)
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    let release = () => {}
    held = new Promise<void>(resolve => {
      release = resolve
    })
    expect(await failure(write(store, one, other, within(250)))).toMatchObject({ status: 503, outcome: 'unknown' })
    await pause(50)
    release()
    await expect.poll(() => came).toBeDefined()
    expect(await came).toMatchObject({ message: expect.stringContaining('malformed JSON') })
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
    expect(await direct.read(other.key, { now: NOW })).toBe(null)
    expect((await direct.create(other, {}, { now: NOW })).outcome).toBe('created')
  })

  it.each(Object.entries(WRITES))(
    'does not know of a %s whose answer was lost; repeated, it gets the first answer',
    async (name, write) => {
      let isLost = false
      const store = new D1Store(
        around(async send => {
          const answer = await send()
          if (isLost) throw new Error('D1_ERROR: Network connection lost.')
          return answer
        }),
      )
      const one = ofNewUser()
      const other = record({ userId: one.userId })
      await direct.create(one, {}, { now: NOW })
      await store.touch(newKey(), NOW, NOW, { now: NOW })
      const drawn = change()
      const call = () =>
        name === 'update'
          ? store.update(one.key, 1, drawn, { now: NOW, deadline: within(5000) })
          : write(store, one, other, within(5000))
      isLost = true
      expect(await failure(call())).toMatchObject({ status: 503, outcome: 'unknown' })
      isLost = false
      expect(await call()).toEqual(FIRST_ANSWERS[name] ?? expect.objectContaining({ outcome: 'created' }))
    },
  )

  it.each(['D1 DB is overloaded. Requests queued for too long.', 'D1 DB is overloaded. Too many requests queued.'])(
    'knows that nothing was applied, and does not ask again, when D1 says: %s',
    async message => {
      let asked = 0
      const store = new D1Store(
        around(async () => {
          asked += 1
          throw new Error(`D1_ERROR: ${message}`)
        }),
      )
      const error = await failure(store.delete(newKey(), { now: NOW }))
      expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: `D1_ERROR: ${message}` } })
      expect(asked).toBe(1)
    },
  )
})
