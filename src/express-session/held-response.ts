// A response that waits for its session. express-session sends the head and saves meanwhile; here the cookie of a session
// that begins is known when the store has it, so that the head waits. A response that has nothing to save never waits.
import type { ServerResponse } from 'node:http'
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

/** Replaces members of a response, and puts back what was there. */
function shadow(response: ServerResponse, replacements: Methods): () => void {
  const target = response as unknown as Methods
  const before = Object.keys(replacements).map(name => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  for (const [name, method] of Object.entries(replacements))
    Object.defineProperty(target, name, { value: method, configurable: true, writable: true, enumerable: true })
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) delete target[name]
      else Object.defineProperty(target, name, descriptor)
    }
  }
}

/** Lets the response go out when its session is saved. */
export function holdResponse(response: ServerResponse, settling: Settling): void {
  /** `asks`: each call asks whether it is to wait. `holds`: calls are kept. `passes`: calls go through, for good. */
  let state: 'asks' | 'holds' | 'passes' = 'asks'
  let kept: [method: Method, values: unknown[]][] = []
  let isEndKept = false

  const hold = () => {
    state = 'holds'
    const { statusCode, statusMessage } = response
    // The answer is given: what comes after it, such as a second answer, changes it as little as it would change one
    // that was sent.
    const ignored = () => response
    const release = shadow(response, Object.fromEntries(HEADERS.map(name => [name, ignored])))
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
    for (const [method, values] of calls) {
      const answer = method.apply(response, values)
      if (method === originals.write) isDrained = answer === true
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
      state = 'passes'
      for (const name of response.getHeaderNames?.() ?? []) {
        if (OF_THE_BODY.test(name)) response.removeHeader(name)
        // How long the answer may be kept does not hold for the error: it would outlast the outage.
        if (name === 'cache-control') response.setHeader(name, 'no-store')
      }
      settling.fail(error)
      return
    }
    // Too late for another answer. The error handler may cut this one off; else it is completed.
    state = 'passes'
    settling.fail(error)
    nextTurn(() => {
      if (!response.writableEnded && !response.destroyed) replay()
    })
  }

  const originals = {} as Record<(typeof SENDING)[number], Method>
  const target = response as unknown as Methods
  for (const name of SENDING) {
    const original = target[name]
    if (typeof original !== 'function') continue
    originals[name] = original
    const sending = (...values: unknown[]) => {
      const isEnd = name === 'end'
      if (state === 'asks' && (isEnd || !response.headersSent) && settling.isDue()) hold()
      if (state === 'holds') {
        // Of several ends the first counts.
        if (!isEndKept) kept.push([original, values])
        isEndKept ||= isEnd
        return name === 'write' ? false : name === 'flushHeaders' ? undefined : response
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
