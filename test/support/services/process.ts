// Private servers for tests: found on PATH, started on free loopback ports in a temporary folder, stopped afterwards.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

export { findBinary } from './engine-list.mjs'
export { freePort } from './port.mjs'

/**
 * Calls `probe` until it stops throwing; rejects with its last error after `timeout` ms, and at once when `server`, the
 * process that is asked, has ended.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeout = 30_000, server }: { timeout?: number; server?: Running } = {},
): Promise<T> {
  const end = Date.now() + timeout
  for (;;) {
    // Asked before the probe: another server on the same port must not answer in its place.
    if (server?.ended()) throw new Error(`${what}: the process has ended\n${server.output()}`)
    try {
      return await probe()
    } catch (error) {
      if (Date.now() > end)
        throw new Error(`${what} did not happen within ${timeout} ms\n${server?.output() ?? ''}`, { cause: error })
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
  ended(): boolean
  /** Sends a signal (SIGTERM unless told) and resolves when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Lets it stand still; returns when it does. */
  pause(): void
  resume(): void
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4))

/** The states of a process's threads as Linux tells them, `T` for one that is stopped; none where the system is another. */
export function threadStates(pid: number): string[] {
  const folder = `/proc/${pid}/task`
  try {
    return readdirSync(folder).map(thread =>
      readFileSync(`${folder}/${thread}/stat`, 'utf8').replace(/^.*\) (\S) .*$/s, '$1'),
    )
  } catch {
    return []
  }
}

/**
 * Stops a process. On a busy machine its threads run on after the signal was sent, until the system comes to them: an
 * answer of theirs would pass for one of a server that stands still.
 */
function standStill(child: ChildProcess): void {
  child.kill('SIGSTOP')
  const end = performance.now() + 30_000
  while (threadStates(child.pid!).some(state => !/[TtZX]/.test(state))) {
    if (performance.now() > end) throw new Error(`process ${child.pid} does not stop`)
    Atomics.wait(SLEEPER, 0, 0, 1)
  }
}

// Its input ends when the process that started it is gone, however that ended.
// What a terminal sends to all of them is for that process alone.
const GUARD = `trap '' INT TERM HUP; folder=$1; shift; "$@" </dev/null & cat >/dev/null; kill -9 $!; wait; rm -rf "$folder"`

/** Starts a server that nobody stops: it ends with this process, and its folder is removed then. */
export function startGuarded(
  folder: string,
  binary: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Running {
  const guard = start('sh', ['-c', GUARD, 'sh', folder, binary, ...args], {
    ...options,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // Killed with the others, it would leave the server behind.
  running.delete(guard.child)
  return guard
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
  let over = false
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      output += String(error)
      over = true
      resolve()
    })
    child.once('exit', () => {
      running.delete(child)
      over = true
      resolve()
    })
  })
  return {
    child,
    output: () => output,
    ended: () => over,
    async stop(signal = 'SIGTERM') {
      if (!over) child.kill(signal)
      await ended
    },
    pause: () => standStill(child),
    resume: () => void child.kill('SIGCONT'),
  }
}
