// A response that waits for its session. express-session sends the head and saves meanwhile; here the cookie of a session
// that begins is known when the store has it, so that the head waits. A response that has nothing to save never waits.
import type { ServerResponse } from 'node:http'
import { nextTurn } from '../time/next-turn.ts'
import { HELD } from '../visits/node-head.ts'

/** What the response asks of its bridge. */
export interface Settling {
  /** Whether something has to be saved before the response goes out. */
  isDue(): boolean
  settle(): Promise<void>
  /** The response was not sent: what settle threw goes to the error handler. */
  fail(error: unknown): void
  /** The response is complete. */
  over(): void
}

const SENDING = ['writeHead', 'flushHeaders', 'write', 'end'] as const
const HEADERS = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'] as const
/** Of the answer that is not sent; the error's own answer must not have them. */
const OF_THE_BODY = /^(?:content-.*|transfer-encoding|etag|last-modified|expires|location|accept-ranges)$/

/**
 * How many bytes are held at least before a write says to wait. Compression has those who wait listen to a stream of its
 * own, which drains only where it was told more than it keeps: 16 KiB, from Node 22 on 64 KiB.
 */
const ENOUGH = 64 * 1024

const sizeOf = (chunk: unknown, encoding: unknown): number =>
  typeof chunk === 'string'
    ? Buffer.byteLength(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined)
    : ((chunk as Uint8Array | null)?.byteLength ?? 0)

type Method = (...values: unknown[]) => unknown
type Methods = Record<string, Method | undefined>

/** Replaces members of a response by values, and puts back what was there. */
function shadow(response: ServerResponse, replacements: Readonly<Record<string | symbol, unknown>>): () => void {
  const names = Reflect.ownKeys(replacements)
  const before = names.map(name => [name, Object.getOwnPropertyDescriptor(response, name)] as const)
  for (const name of names)
    Object.defineProperty(response, name, {
      value: replacements[name],
      configurable: true,
      writable: true,
      enumerable: true,
    })
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(response, name)
      else Object.defineProperty(response, name, descriptor)
    }
  }
}

/** Lets the response go out when its session is saved. */
export function holdResponse(response: ServerResponse, settling: Settling): void {
  /**
   * `asks`: each call asks whether it is to wait. `holds`: calls are kept. `passes`: calls go through, for good.
   * `refused`: of an answer that was refused before its end, the rest may still come.
   */
  let state: 'asks' | 'holds' | 'refused' | 'passes' = 'asks'
  let kept: [method: Method, values: unknown[]][] = []
  let isEndKept = false
  let keptBytes = 0
  /** A write was told to wait for a drain. */
  let isAwaited = false
  let refusedStatus = 0

  const hold = () => {
    state = 'holds'
    const { statusCode, statusMessage } = response
    // The answer is given: what comes after it, such as a second answer, changes it as little as it would change one
    // that was sent.
    const ignored = () => response
    // For the application the head is out: an error handler must not give another answer now. Older middleware looks at
    // _header for that. Edges look at HELD.
    const around: (() => void)[] = []
    const sent = response.headersSent ? {} : { headersSent: true, _header: 'held', [HELD]: around }
    const release = shadow(response, { ...Object.fromEntries(HEADERS.map(name => [name, ignored])), ...sent })
    const restore = () => {
      release()
      for (const write of around) write()
      response.statusCode = statusCode
      response.statusMessage = statusMessage
    }
    settling.settle().then(
      () => {
        restore()
        replay()
      },
      error => {
        restore()
        refuse(error)
      },
    )
  }

  const replay = () => {
    const calls = kept
    const isWaited = isAwaited
    kept = []
    keptBytes = 0
    isAwaited = false
    state = 'passes'
    let isDrained = false
    try {
      for (const [method, values] of calls) {
        const answer = method.apply(response, values)
        if (method === originals.write) isDrained = answer === true
      }
    } catch (error) {
      // Node refuses a header, a status or a chunk. The handler that gave it has returned: the error handler hears of it.
      refuse(error)
      return
    }
    if (isEndKept) settling.over()
    else {
      // The next call asks again: what a streaming handler changes later is saved at the end.
      state = 'asks'
      if (isDrained && isWaited) response.emit('drain')
    }
  }

  const refuse = (error: unknown) => {
    if (!response.headersSent) {
      kept = []
      state = isEndKept ? 'passes' : 'refused'
      refusedStatus = response.statusCode
      // A compression put around us has begun its stream: the error's own answer would be mixed with the rest of that.
      if (response.hasHeader?.('content-encoding') && target.write !== ours.write) cut()
      for (const name of response.getHeaderNames?.() ?? []) {
        if (OF_THE_BODY.test(name)) response.removeHeader(name)
        // How long the answer may be kept does not hold for the error: it would outlast the outage.
        if (name === 'cache-control') response.setHeader(name, 'no-store')
      }
      settling.fail(error)
      return
    }
    // Too late for another answer. The error handler may cut this one off; else it is completed, if it can be.
    state = 'passes'
    settling.fail(error)
    nextTurn(() => {
      if (response.writableEnded || response.destroyed) return
      if (kept.length > 0) replay()
      else cut()
    })
  }

  const cut = () => {
    response.destroy()
    settling.over()
  }

  const originals = {} as Record<(typeof SENDING)[number], Method>
  const ours: Methods = {}
  const target = response as unknown as Methods
  const nothingSent = (name: string) => (name === 'write' ? false : name === 'flushHeaders' ? undefined : response)
  for (const name of SENDING) {
    const original = target[name]
    if (typeof original !== 'function') continue
    originals[name] = original
    const sending = (...values: unknown[]) => {
      const isEnd = name === 'end'
      if (state === 'refused') {
        // The rest of what was refused must not pass for the whole: the answer of an error handler has a status of its own.
        if (name === 'writeHead' || response.statusCode !== refusedStatus) state = 'passes'
        else {
          if (isEnd) cut()
          return nothingSent(name)
        }
      }
      if (state === 'asks' && (isEnd || !response.headersSent) && settling.isDue()) {
        // What was put around writeHead, such as a compression that chooses by the head, sees it before what is written next.
        if (name === 'flushHeaders') response.writeHead(response.statusCode)
        if (state === 'asks') hold()
      }
      if (state === 'holds') {
        // Of several ends the first counts.
        if (!isEndKept) kept.push([original, values])
        isEndKept ||= isEnd
        if (name !== 'write') return nothingSent(name)
        keptBytes += sizeOf(values[0], values[1])
        isAwaited ||= keptBytes >= Math.max(ENOUGH, response.writableHighWaterMark ?? 0)
        return !isAwaited
      }
      // Its own calls of write and writeHead ask no more.
      if (isEnd) state = 'passes'
      const answer = original.apply(response, values)
      if (isEnd) settling.over()
      return answer
    }
    // Bound for the reason that guardHead gives.
    ours[name] = target[name] = sending.bind(null)
  }
}
