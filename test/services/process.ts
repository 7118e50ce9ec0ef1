// Private servers for tests: found on PATH, started on free loopback ports in a temporary folder, stopped afterwards.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { createServer } from 'node:net'

export { findBinary } from './engine-list.mjs'

/** A loopback port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** Calls `probe` until it stops throwing; rejects with its last error after `timeout` ms. */
export async function until<T>(what: string, probe: () => T | Promise<T>, timeout = 30_000): Promise<T> {
  const end = Date.now() + timeout
  for (;;) {
    try {
      return await probe()
    } catch (error) {
      if (Date.now() > end) throw new Error(`${what} did not happen within ${timeout} ms`, { cause: error })
      await new Promise(resolve => setTimeout(resolve, 25))
    }
  }
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface Running {
  readonly child: ChildProcess
  /** Everything the process printed so far. */
  output(): string
  /** Sends a signal (SIGTERM unless told) and resolves when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Starts a process that dies with this one at the latest. */
export function start(binary: string, args: readonly string[], options: SpawnOptions = {}): Running {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  let output = ''
  child.stdout?.on('data', chunk => {
    output += chunk
  })
  child.stderr?.on('data', chunk => {
    output += chunk
  })
  running.add(child)
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      output += String(error)
      resolve()
    })
    child.once('exit', () => {
      running.delete(child)
      resolve()
    })
  })
  return {
    child,
    output: () => output,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await ended
    },
  }
}
