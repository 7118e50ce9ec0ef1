// A service of express-session that is being replaced: its records as its stores have them, its signed cookies, and nodes
// of the new service, each with a manager of its own over one store.
import { createHmac } from 'node:crypto'
import { SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { openVisit, type VisitRequest, withCookies } from 'coatcheck/custom-server'
import {
  fromExpressSession,
  type SessionImporter,
  type SessionImporterOptions,
  sessionImporter,
} from 'coatcheck/import'
import { MemoryStore } from 'coatcheck/stores/memory'
import { BarrierStore } from './barrier-store.ts'
import { onlyHost } from './only-host.ts'

export const SECRET = 'a secret of the old service'
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const BEGIN = 1_800_000_000_000

const base64 = (sid: string, secret: string) =>
  createHmac('sha256', secret).update(sid).digest('base64').replace(/=+$/, '')

/** `connect.sid` as express-session sends it. */
export const connectSid = (sid: string, secret = SECRET): string =>
  `connect.sid=${encodeURIComponent(`s:${sid}.${base64(sid, secret)}`)}`

export interface OldRecord {
  cookie?: unknown
  userId?: unknown
  name?: string
  loginAt?: number
  [other: string]: unknown
}

/** A store of express-session's shape, which counts what it is asked and fails when told to. */
export class OldStoreStub {
  readonly records = new Map<string, string>()
  readonly asked: string[] = []
  /** Takes the place of the answer of a call. */
  fault: ((verb: 'get' | 'destroy') => unknown) | null = null

  put(sid: string, record: OldRecord): void {
    this.records.set(sid, JSON.stringify(record))
  }

  get(sid: string, callback: (error: unknown, session?: unknown) => void): void {
    this.#answer('get', sid, callback, () => {
      const text = this.records.get(sid)
      return text === undefined ? undefined : JSON.parse(text)
    })
  }

  destroy(sid: string, callback: (error?: unknown) => void): void {
    this.#answer('destroy', sid, callback, () => void this.records.delete(sid))
  }

  #answer(
    verb: 'get' | 'destroy',
    sid: string,
    callback: (error: unknown, value?: unknown) => void,
    run: () => unknown,
  ) {
    this.asked.push(`${verb} ${sid}`)
    setImmediate(() => {
      const failed = this.fault?.(verb)
      if (failed instanceof Error) callback(failed)
      else if (failed === undefined || failed === null) {
        let value: unknown
        try {
          value = run()
        } catch (error) {
          callback(error)
          return
        }
        callback(null, value)
      }
    })
  }
}

export interface Data {
  cart?: string[]
}

/** Express-session's `cookie` in a record: an hour, touched at `at`. */
export const cookieAt = (at: number, maxAge = HOUR) => ({
  originalMaxAge: maxAge,
  expires: new Date(at + maxAge).toISOString(),
  httpOnly: true,
  path: '/',
})

export interface Options {
  manager?: Partial<SessionOptions<Data, 'bigint', Data>>
  importer?: Partial<SessionImporterOptions<Data, 'bigint', Data, OldRecord>>
  secret?: string | readonly string[]
}

/** A replacement: one old store, one new store, and a clock that stands. */
export function replacement(inner: Store = new MemoryStore()) {
  const clock = { now: BEGIN }
  const old = new OldStoreStub()
  const store = BarrierStore.over(inner)
  /** What the managers told of failing stores. */
  const told: Error[] = []
  const events: { type: string }[] = []
  const managers: SessionManager<Data>[] = []

  /** A node of the new service, with memory of its own. */
  function node({ manager = {}, importer: options = {}, secret = SECRET }: Options = {}) {
    const sessions = new SessionManager<Data>({
      store,
      now: () => clock.now,
      sweepInterval: false,
      onEvent: event => {
        events.push(event)
        if (event.type === 'store-error') told.push(event.error)
      },
      ...manager,
    })
    managers.push(sessions)
    const importer: SessionImporter<Data, 'bigint', Data> = sessionImporter(sessions, {
      from: fromExpressSession<OldRecord>({ secret, store: old }),
      toLogin: ({ userId, name, loginAt, cart }) =>
        userId === undefined || userId === null
          ? null
          : {
              user: { id: BigInt(userId as string), name: name ?? '' },
              createdAt: loginAt,
              data: { ...(cart !== undefined && { cart: cart as string[] }) },
            },
      ...options,
    })
    const visit = (cookie: string | null, request: Partial<VisitRequest> = {}) =>
      openVisit(sessions, { method: 'GET', secure: true, cookie, header: onlyHost, ...request })
    const open = (cookie: string | null, request?: Partial<VisitRequest>) =>
      importer.import(cookie, header => visit(header, request))
    /** One request: imports, and answers who it is. */
    const ask = async (cookie: string | null, request?: Partial<VisitRequest>) => {
      const { visit: opened, setCookie } = await open(cookie, request)
      const session = await opened.get()
      return {
        session,
        name: session?.user?.name ?? null,
        visit: opened,
        /** Names of old cookies that the response removes. */
        removed: setCookie.map(line => line.split('=', 1)[0]),
        /** What the browser sends next. */
        next: () => {
          const removed = setCookie.map(line => ({ name: line.split('=', 1)[0]!, value: '' }))
          return withCookies(cookie, [...opened.finish().cookies, ...removed])
        },
      }
    }
    return { sessions, importer, visit, open, ask }
  }
  const close = async () => void (await Promise.all(managers.map(each => each.close())))
  return { clock, old, store, told, events, node, close }
}

/** An old ID, and the cookie with it. */
export const SID = 'VGhpcyBpcyBhbiBvbGQgSUQgb2YgMjQgYg'
export const OLD = connectSid(SID)
export const ada = { userId: '42', name: 'ada', cart: ['tea'] }

/** A replacement of two nodes with one live old session, of ada, which `put` writes again, with some of it changed. */
export function withAda(record: object = {}, options: Options = {}) {
  const world = replacement()
  const put = (more: object = {}) =>
    world.old.put(SID, { cookie: cookieAt(world.clock.now), ...ada, ...record, ...more })
  put()
  return { ...world, put, one: world.node(options), two: world.node(options) }
}
