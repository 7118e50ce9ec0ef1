// Two nodes of the service as processes of their own, and requests to them, each with what came of it.
import { Agent, request as open } from 'node:http'
import { root } from '../../support/example-service.ts'
import { type Running, start, until } from '../../support/services/process.ts'
import type { Users } from './users.ts'

/** What a node has counted since it started. */
export interface Tally {
  readonly received: number
  readonly answered: number
  /** Whose connection ended before the answer was sent. */
  readonly abandoned: number
  readonly thefts: number
  readonly corrupt: number
  readonly resets: number
}

export interface Figures extends Tally {
  readonly heapUsed: number
  readonly external: number
  readonly rss: number
  readonly handles: number
}

export interface NodeOptions {
  readonly url: string
  readonly users: Users
  /** Lives of sessions, in seconds. */
  readonly idle: number
  readonly absolute: number
  /** Files that Node.js loads first. */
  readonly preload?: readonly string[]
}

/** An operator's machine kills what has not ended by then, in ms. */
const STOP_PATIENCE = 30_000

/** One node: started anew, it is another process at another port. */
export class ServiceNode {
  readonly #options: NodeOptions
  #running: Running | undefined
  #port = 0
  #agent: Agent | undefined
  #tally: Tally | null = null
  #figures: ((figures: Figures) => void) | null = null
  /** While it stops or is not there: then a connection may be refused, or end without an answer. */
  isStopping = false
  /** Requests whose connection the driver ended before the answer came. */
  aborted = 0
  /** Requests that were answered late or never, and what else was wrong: of all processes that this node was. */
  readonly faults: string[] = []
  readonly sums = { received: 0, answered: 0, thefts: 0 }

  constructor(options: NodeOptions) {
    this.#options = options
  }

  get port(): number {
    return this.#port
  }

  get agent(): Agent | undefined {
    return this.#agent
  }

  get output(): string {
    return this.#running?.output() ?? ''
  }

  async start(): Promise<void> {
    const { url, users, idle, absolute, preload = [] } = this.#options
    const args = ['--expose-gc', ...preload.flatMap(file => ['--import', file]), 'proof/soak/node.mjs']
    const env = { ...process.env, STORE_URL: url, IDLE: `${idle}`, ABSOLUTE: `${absolute}` }
    const running = start(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    this.#running = running
    this.#port = 0
    this.#tally = null
    this.aborted = 0
    running.child.on('message', (message: any) => {
      if (message.ask !== undefined) {
        const answer = users.answer(message.ask, message.args)
        if (running.child.connected) running.child.send({ answerTo: message.id, answer })
      } else if (message.port !== undefined) this.#port = message.port
      else if (message.figures !== undefined) this.#figures?.(message.figures)
      else this.#tally = message.stopped
    })
    await until(
      'a node listening',
      () => {
        if (this.#port === 0) throw new Error('not yet')
      },
      { server: running },
    )
    this.#agent = new Agent({ keepAlive: true, maxSockets: 64 })
    this.isStopping = false
  }

  /** Collects garbage, then counts. */
  figures(): Promise<Figures> {
    return new Promise(resolve => {
      this.#figures = resolve
      this.#running?.child.send({})
    })
  }

  /** Ends it at once, whatever it does. */
  async end(): Promise<void> {
    this.isStopping = true
    this.#agent?.destroy()
    await this.#running?.stop('SIGKILL')
  }

  /** As an operator ends it: it answers what it has received, then exits with 0. */
  async stop(): Promise<void> {
    if (this.#running === undefined || this.#running.ended()) return
    this.isStopping = true
    const late = setTimeout(() => {
      this.faults.push(`a node had not ended ${STOP_PATIENCE / 1000} s after SIGTERM`)
      void this.end()
    }, STOP_PATIENCE)
    await this.#running.stop('SIGTERM')
    clearTimeout(late)
    this.#agent?.destroy()
    const { exitCode } = this.#running.child
    const tally = this.#tally
    if (exitCode !== 0 || tally === null)
      return void this.faults.push(`a node ended with ${exitCode} at SIGTERM:\n${this.output.slice(-2000)}`)
    const { received, answered, abandoned, thefts, corrupt, resets } = tally
    this.sums.received += received
    this.sums.answered += answered
    this.sums.thefts += thefts
    if (received !== answered + abandoned || abandoned > this.aborted)
      this.faults.push(
        `of ${received} requests a node answered ${answered}, ${abandoned} lost their connection, of which clients had given up ${this.aborted}`,
      )
    if (corrupt + resets > 0)
      this.faults.push(`a node met ${corrupt} corrupt records, and data that it had to reset ${resets} times`)
  }
}

/** `refused`: no node received it. `cut`: the connection ended without an answer. `aborted`: by ourselves. */
export type Failure = 'refused' | 'cut' | 'aborted' | 'silent'

export interface Reply {
  readonly status: number
  readonly cookies: readonly string[]
  readonly body: any
}

export interface Ask {
  readonly method: string
  readonly path: string
  readonly cookie?: string
  readonly agent?: string
  readonly body?: unknown
  /** Ends the connection after this time, in ms, as a tab that is closed. */
  readonly abortAfter?: number | undefined
}

/** No answer after this time, in ms, is none at all. */
const PATIENCE = 30_000

/** One request to one node. */
export function send(node: ServiceNode, ask: Ask): Promise<Reply | Failure> {
  const { method, path, cookie, agent = 'visitor', body, abortAfter } = ask
  return new Promise(resolve => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    let over = false
    const finish = (outcome: Reply | Failure) => {
      if (over) return
      over = true
      clearTimeout(patience)
      clearTimeout(abort)
      resolve(outcome)
    }
    const request = open({
      host: '127.0.0.1',
      port: node.port,
      method,
      path,
      agent: node.agent,
      headers: {
        'User-Agent': agent,
        ...(cookie && { Cookie: cookie }),
        ...(text !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
      },
    })
    const giveUp = (why: 'silent' | 'aborted') => {
      if (over) return
      node.aborted++
      finish(why)
      request.destroy()
    }
    const patience = setTimeout(giveUp, PATIENCE, 'silent')
    const abort = abortAfter === undefined ? undefined : setTimeout(giveUp, abortAfter, 'aborted')
    request.on('error', (error: NodeJS.ErrnoException) => finish(error.code === 'ECONNREFUSED' ? 'refused' : 'cut'))
    request.on('response', response => {
      let received = ''
      response.setEncoding('utf8').on('data', chunk => {
        received += chunk
      })
      response.on('error', () => finish('cut'))
      response.on('close', () => finish('cut'))
      response.on('end', () => {
        const isJson = response.headers['content-type']?.startsWith('application/json')
        finish({
          status: response.statusCode!,
          cookies: response.headers['set-cookie'] ?? [],
          body: isJson ? JSON.parse(received) : received,
        })
      })
    })
    request.end(text)
  })
}
