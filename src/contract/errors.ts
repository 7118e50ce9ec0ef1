import type { Store } from './store.ts'

/** The code of a `SessionError`: stable, and each has one HTTP status. */
export type SessionErrorCode =
  | 'ERR_SESSION_STORE'
  | 'ERR_SESSION_CONFLICT'
  | 'ERR_SESSION_UNAUTHENTICATED'
  | 'ERR_SESSION_STALE_LOGIN'
  | 'ERR_SESSION_NOT_FRESH'
  | 'ERR_SESSION_CROSS_ORIGIN'
  | 'ERR_SESSION_CSRF'
  | 'ERR_SESSION_INSECURE'
  | 'ERR_SESSION_LIMIT'
  | 'ERR_SESSION_DATA'
  | 'ERR_SESSION_HEADERS_SENT'
  | 'ERR_SESSION_ID_COLLISION'

const STATUS: Readonly<Record<SessionErrorCode, number>> = {
  ERR_SESSION_STORE: 503,
  ERR_SESSION_CONFLICT: 503,
  ERR_SESSION_UNAUTHENTICATED: 401,
  ERR_SESSION_STALE_LOGIN: 401,
  ERR_SESSION_NOT_FRESH: 401,
  ERR_SESSION_CROSS_ORIGIN: 403,
  ERR_SESSION_CSRF: 403,
  ERR_SESSION_INSECURE: 403,
  ERR_SESSION_LIMIT: 409,
  ERR_SESSION_DATA: 500,
  ERR_SESSION_HEADERS_SENT: 500,
  ERR_SESSION_ID_COLLISION: 500,
}

const BRANDS = new Map<unknown, symbol>()

/**
 * The name of a class in its messages, and a registered symbol on its instances, so that `instanceof` holds between the
 * ESM and the CommonJS build loaded side by side.
 */
function brand(type: { readonly prototype: Error }, name: string): void {
  const symbol = Symbol.for(`coatcheck.${name}`)
  BRANDS.set(type, symbol)
  Object.defineProperty(type.prototype, 'name', { value: name, configurable: true, writable: true })
  Object.defineProperty(type.prototype, symbol, { value: true })
}

/**
 * Thrown if a session call cannot do what was asked; expected outcomes are values instead. Express, Fastify, Koa and
 * Hono answer its status by themselves.
 */
export class SessionError extends Error {
  readonly code: SessionErrorCode
  /** The HTTP status that fits: 401, 403, 409, 500 or 503. */
  readonly status: number

  constructor(code: SessionErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
    this.status = STATUS[code]
  }

  /** The same as `status`: Fastify's name for it. */
  get statusCode(): number {
    return this.status
  }

  /** Whether a client may read the message: below 500. Koa's name for it. */
  get expose(): boolean {
    return this.status < 500
  }

  /** An answer in JSON, with the code, and below 500 the message: Hono sends it by itself. */
  getResponse(): Response {
    const { code, message, status } = this
    const headers = { 'Cache-Control': 'no-store' }
    return Response.json({ error: code, ...(this.expose && { message }) }, { status, headers })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    const symbol = BRANDS.get(this)
    // A subclass without a brand of its own keeps the ordinary meaning.
    if (symbol === undefined) return Function.prototype[Symbol.hasInstance].call(this, value)
    return typeof value === 'object' && value !== null && symbol in value
  }
}
brand(SessionError, 'SessionError')

/** Each request of an outage is logged by its handler: by `console.error` one line, with the causes and no stack. */
function inOneLine(this: SessionError, _depth: number, _options: object, inspect: (value: unknown) => string): unknown {
  if (this.status !== 503) return this
  const said: string[] = []
  for (let part: unknown = this; part !== undefined && said.length < 5; part = Object(part).cause) {
    const { name, message, code = name } = Object(part)
    said.push(part instanceof Error ? `${code}: ${message}` : inspect(part))
  }
  return said.join('; ').replaceAll(/\s+/g, ' ')
}
Object.defineProperty(SessionError.prototype, Symbol.for('nodejs.util.inspect.custom'), { value: inOneLine })

/** A method of the store contract. */
export type StoreOperation = Exclude<keyof Store, 'shard' | 'isPerRequest'>

const READING = new Set<StoreOperation>(['read', 'listUser', 'scan', 'count'])
/** Nothing can have been written by these, whatever went wrong. */
export const isReading = (operation: StoreOperation): boolean => READING.has(operation)

/**
 * The store failed, was too slow, or answered nonsense: an outage, never a logout.
 * Code `ERR_SESSION_STORE`, status 503; `cause` is the store's own error.
 */
export class SessionStoreError extends SessionError {
  declare readonly code: 'ERR_SESSION_STORE'
  readonly operation: StoreOperation
  /** `'not-applied'`: certainly nothing was written. `'unknown'`: it may have been, or a part of it was. */
  readonly outcome: 'not-applied' | 'unknown'

  constructor(
    operation: StoreOperation,
    outcome: 'not-applied' | 'unknown',
    message: string,
    options?: { cause?: unknown },
  ) {
    super('ERR_SESSION_STORE', message, options)
    this.operation = operation
    this.outcome = outcome
  }
}
brand(SessionStoreError, 'SessionStoreError')
