// Nodes of the service as processes of their own.
import { root } from '../../support/example-service.ts'
import { type Running, start, until } from '../../support/services/process.ts'
import type { Users } from './users.ts'

export interface Figures {
  readonly heapUsed: number
  readonly handles: number
  /** Alarms, and records or data that a node could not read, since it started. */
  readonly alarms: number
}

export interface NodeOptions {
  readonly storeUrl: string
  readonly users: Users
  /** Lives of sessions, in ms. */
  readonly idle: number
  readonly absolute: number
}

/** An operator's machine kills what has not ended by then, in ms. */
const STOP_PATIENCE = 30_000

/** One node: started anew, it is another process at another port. */
export class ServiceNode {
  readonly #options: NodeOptions
  #running: Running | undefined
  #figures: ((figures: Figures) => void) | null = null
  url = ''
  /** While it stops or is not there: then a connection may be refused, or end without an answer. */
  isStopping = false
  /** What was wrong with any of the processes that it was. */
  readonly faults: string[] = []

  constructor(options: NodeOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { storeUrl, users, idle, absolute } = this.#options
    const env = { ...process.env, STORE_URL: storeUrl, IDLE: `${idle}`, ABSOLUTE: `${absolute}` }
    const args = ['--expose-gc', 'test/proof/soak/node.mjs']
    const running = start(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    this.#running = running
    let url = ''
    running.child.on('message', (message: any) => {
      if (message.ask !== undefined) {
        const answer = users.answer(message.ask, message.args)
        if (running.child.connected) running.child.send({ answerTo: message.id, answer })
      } else if (message.port !== undefined) url = `http://127.0.0.1:${message.port}`
      else this.#figures?.(message.figures)
    })
    const listens = () => {
      if (url === '') throw new Error('not yet')
    }
    await until('a node listening', listens, { server: running })
    this.url = url
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
    await this.#running?.stop('SIGKILL')
  }

  /** As an operator ends it: it answers what it has received, then exits with 0. */
  async stop(): Promise<void> {
    if (this.#running === undefined || this.#running.ended()) return
    const { alarms } = await this.figures()
    if (alarms > 0) this.faults.push(`a node met ${alarms} stolen tokens, or records that it could not read`)
    this.isStopping = true
    const late = setTimeout(() => {
      this.faults.push(`a node had not ended ${STOP_PATIENCE / 1000} s after SIGTERM`)
      void this.end()
    }, STOP_PATIENCE)
    await this.#running.stop('SIGTERM')
    clearTimeout(late)
    const { exitCode, signalCode } = this.#running.child
    if (exitCode !== 0)
      this.faults.push(
        `a node ended with ${exitCode ?? signalCode} at SIGTERM:\n${this.#running.output().slice(-2000)}`,
      )
  }
}
