// A response whose end waits until the session is saved. Its cookie can still go out, and an answer that counted on the
// write is not sent if that fails. A head that is given before waits with it. A response that has nothing to save never
// waits, and one that streams is sent as it comes: its session must have begun before.
import type { ServerResponse } from 'node:http'
import { nextTurn } from '../time/next-turn.ts'

/** The bridge, for its response. */
export interface Settling {
  /** Whether something has to be saved before the response goes out. */
  isDue(): boolean
  settle(): Promise<void>
  /** Whether the response has to bring a cookie. */
  isSending(): boolean
  /** The response was not sent: the error handler gets the error of `settle`. */
  fail(error: unknown): void
  /** The response is complete. */
  over(): void
}

const HEADERS = { setHeader: 'set', setHeaders: 'set', appendHeader: 'append', removeHeader: 'remove' }
/** Headers of the answer that is not sent; the error's own answer must not have them. */
const OF_THE_BODY = /^(?:content-.*|transfer-encoding|etag|last-modified|expires|location|accept-ranges)$/

type Method = (...values: unknown[]) => unknown
type Methods = Record<'writeHead' | 'flushHeaders' | 'write' | 'end', Method>

/** As Node does once the head is out. */
const alreadySent = (what: string) => (): never => {
  const error = new Error(`Cannot ${what} headers after they are sent to the client`)
  throw Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' })
}

const HELD = Symbol('coatcheck held response')

/** The one of this response. */
export function heldResponse(response: ServerResponse): HeldResponse {
  const holder = response as { [HELD]?: HeldResponse }
  holder[HELD] ??= new HeldResponse(response)
  return holder[HELD]
}

export class HeldResponse implements ProxyHandler<ServerResponse> {
  /** The response as its visit sees it: the head is out when it is, and the visit's headers are written when we say so. */
  readonly forVisit: ServerResponse
  /** The application looked at its session. Only then the response carries the headers that say so. */
  isLookedAt = false
  readonly #response: ServerResponse
  readonly #before: Methods
  /** Writes the visit's headers, and then the head. */
  #guard: Method | null = null
  #settling: Settling | null = null
  /** The arguments of writeHead, as long as the head waits. */
  #head: unknown[] | null = null
  /** Calls go through: the head went out with the body, or the answer is that of an error handler. */
  #passes = false
  #isSaving = false
  #isRefused = false
  /** Takes away the members that shadow the response's own while it waits. */
  #restore: (() => void) | null = null

  constructor(response: ServerResponse) {
    const target = response as unknown as Methods
    this.#response = response
    this.forVisit = new Proxy(response, this)
    const { writeHead, flushHeaders, write, end } = target
    this.#before = { writeHead, flushHeaders, write, end }
    // Bound functions and no closures: V8 keeps a request for longer if a closure in a property leads to it.
    target.writeHead = this.#writeHead.bind(this)
  }

  /** From now on the end of the response waits for the save. */
  hold(settling: Settling): void {
    const target = this.#response as unknown as Methods
    const { flushHeaders, write, end } = target
    Object.assign(this.#before, { flushHeaders, write, end })
    this.#settling = settling
    if (flushHeaders !== undefined) target.flushHeaders = this.#stream.bind(this, 'flushHeaders')
    target.write = this.#stream.bind(this, 'write')
    target.end = this.#end.bind(this)
  }

  get(target: ServerResponse, name: string | symbol): unknown {
    if (name === 'headersSent') return this.#isSent
    return name === 'writeHead' ? (this.#guard ?? this.#before.writeHead) : Reflect.get(target, name)
  }

  set(target: ServerResponse, name: string | symbol, value: unknown): boolean {
    if (name !== 'writeHead') return Reflect.set(target, name, value)
    this.#guard = value as Method
    return true
  }

  /** The client went away. */
  get isGone(): boolean {
    return this.#response.destroyed
  }

  get #isSent(): boolean {
    return this.#restore === null ? this.#response.headersSent : this.#wasSent
  }
  #wasSent = false

  #writeHead(...args: unknown[]): unknown {
    if (this.#head !== null || this.#isSaving) return alreadySent('write')()
    if (this.#passes || this.#isSent || this.#settling === null) return this.#giveHead(args)
    this.#head = args
    this.#wait()
    return this.#response
  }

  #giveHead(args: unknown[]): unknown {
    const isGuarded = this.#guard !== null && (this.isLookedAt || this.#settling === null || this.#settling.isSending())
    return (isGuarded ? this.#guard! : this.#before.writeHead).apply(this.#response, args)
  }

  #stream(name: 'write' | 'flushHeaders', ...args: unknown[]): unknown {
    if (this.#isSaving) return name === 'write' ? false : undefined
    this.#passes = true
    this.#release()
    return this.#before[name].apply(this.#response, args)
  }

  #end(...args: unknown[]): unknown {
    // Of several ends the first counts.
    if (this.#isSaving) return this.#response
    const settling = this.#settling
    if (this.#isRefused || !settling?.isDue()) return this.#finish(args)
    const { statusCode } = this.#response
    // HTTP/2 has none, and warns of one that is only read.
    const hasMessage = () => Object.hasOwn(this.#response, 'statusMessage')
    const statusMessage = hasMessage() ? this.#response.statusMessage : ''
    this.#isSaving = true
    this.#wait()
    const go = (next: () => unknown) => {
      this.#isSaving = false
      this.#response.statusCode = statusCode
      if (hasMessage()) this.#response.statusMessage = statusMessage
      try {
        next()
      } catch (error) {
        // Node refuses a header, a status or a chunk. The handler has returned: the error handler hears of it.
        this.#refuse(error, args)
      }
    }
    settling.settle().then(
      () => go(() => this.#finish(args)),
      error => go(() => this.#refuse(error, args)),
    )
    return this.#response
  }

  #finish(args: unknown[]): unknown {
    this.#release()
    const settling = this.#settling
    // The end calls write and writeHead: they ask no more.
    this.#passes = true
    const answer = this.#before.end.apply(this.#response, args)
    settling?.over()
    return answer
  }

  /** For the application the head is out now: an error handler must not give another answer. */
  #wait(): void {
    if (this.#restore !== null) return
    this.#wasSent = this.#response.headersSent
    const refused = Object.entries(HEADERS).map(([name, what]) => [name, alreadySent(what)])
    // Older middleware looks at _header.
    const sent = this.#wasSent ? {} : { headersSent: true, _header: 'held' }
    this.#restore = shadow(this.#response, { ...Object.fromEntries(refused), ...sent })
  }

  /** Gives a head that waits. */
  #release(): void {
    this.#restore?.()
    this.#restore = null
    const head = this.#head
    this.#head = null
    if (head !== null) this.#giveHead(head)
  }

  #refuse(error: unknown, args: unknown[]): void {
    const response = this.#response
    const settling = this.#settling!
    this.#restore?.()
    this.#restore = null
    this.#head = null
    // The answer of the error handler waits for nothing.
    this.#passes = true
    this.#isRefused = true
    if (response.headersSent) {
      // Too late for another answer. The error handler may cut this one off; else it is completed.
      settling.fail(error)
      nextTurn(() => {
        if (!response.writableEnded && !response.destroyed) this.#before.end.apply(response, args)
        settling.over()
      })
      return
    }
    for (const name of response.getHeaderNames()) if (OF_THE_BODY.test(name)) response.removeHeader(name)
    // How long the answer may be kept does not hold for the error: it would outlast the outage.
    if (response.hasHeader('cache-control')) response.setHeader('cache-control', 'no-store')
    settling.fail(error)
  }
}

/** Replaces members of a response by values; returns a function that puts the old ones back. */
function shadow(response: ServerResponse, replacements: Readonly<Record<string, unknown>>): () => void {
  const before = Object.keys(replacements).map(name => [name, Object.getOwnPropertyDescriptor(response, name)] as const)
  for (const [name] of before)
    Object.defineProperty(response, name, { value: replacements[name], configurable: true, writable: true })
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(response, name)
      else Object.defineProperty(response, name, descriptor)
    }
  }
}
