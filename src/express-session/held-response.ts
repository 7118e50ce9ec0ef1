// A response that waits for its session. express-session sends the head and saves meanwhile; here the cookie of a session
// that begins is known when the store has it, so that the head waits. A response that has nothing to save never waits.
import type { ServerResponse } from 'node:http'
import { HELD } from '../edge/node-head.ts'
import { nextTurn } from '../time/next-turn.ts'

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
  let refusedStatus = 0

  const hold = () => {
    state = 'holds'
    const { statusCode, statusMessage } = response
    // The answer is given: what comes after it, such as a second answer, changes it as little as it would change one
    // that was sent.
    const ignored = () => response
    // For the application the head is out: an error handler must not give another answer now. Edges look at HELD.
    const sent = response.headersSent ? {} : { headersSent: true, [HELD]: true }
    const release = shadow(response, { ...Object.fromEntries(HEADERS.map(name => [name, ignored])), ...sent })
    const restore = () => {
      release()
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
    kept = []
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
      if (isDrained) response.emit('drain')
    }
  }

  const refuse = (error: unknown) => {
    if (!response.headersSent) {
      kept = []
      state = isEndKept ? 'passes' : 'refused'
      refusedStatus = response.statusCode
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
      if (state === 'asks' && (isEnd || !response.headersSent) && settling.isDue()) hold()
      if (state === 'holds') {
        // Of several ends the first counts.
        if (!isEndKept) kept.push([original, values])
        isEndKept ||= isEnd
        return nothingSent(name)
      }
      // Its own calls of write and writeHead ask no more.
      if (isEnd) state = 'passes'
      const answer = original.apply(response, values)
      if (isEnd) settling.over()
      return answer
    }
    // Bound for the reason that guardHead gives.
    target[name] = sending.bind(null)
  }
}
