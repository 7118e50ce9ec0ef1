// The processes of a history: started, told what to do, and killed or held up by the nemesis.
import { type ChildProcess, fork } from 'node:child_process'
import type { Opening } from './open-store.ts'
import type { Order } from './worker.ts'

export interface Worker {
  readonly name: string
  /** Resolves when it has done as told; also when it was killed meanwhile. */
  tell(order: Order): Promise<void>
  isAlive(): boolean
  kill(): Promise<void>
  pause(): void
  resume(): void
}

export async function startWorker(file: string, name: string, opening: Opening): Promise<Worker> {
  const child: ChildProcess = fork(file, [JSON.stringify([name, opening])], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let killed = false
  let alive = true
  let told: { resolve(): void; reject(error: Error): void } | null = null
  const ended = new Promise<void>(resolve => {
    child.once('exit', (code, signal) => {
      alive = false
      if (killed) told?.resolve()
      else told?.reject(new Error(`a process of the history ended by itself: ${code ?? signal}`))
      resolve()
    })
  })
  const wait = () =>
    new Promise<void>((resolve, reject) => {
      if (!alive) return void (killed ? resolve() : reject(new Error(`${name} has ended`)))
      told = { resolve, reject }
    })
  child.on('message', () => told?.resolve())
  await wait()
  return {
    name,
    tell(order) {
      const done = wait()
      if (alive) child.send(order, () => {})
      return done
    },
    isAlive: () => alive,
    async kill() {
      killed = true
      child.kill('SIGKILL')
      await ended
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}
