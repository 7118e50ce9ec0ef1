// What goes wrong while a history runs: one fault after the other, by the numbers of the seed.
import { readFileSync } from 'node:fs'
import type { FaultProxy } from '../../support/services/proxy.ts'
import { type Hold, instant } from './history.ts'
import type { Worker } from './workers.ts'

/** A number from 0 to 1 of the seed. */
export type Chance = () => number

/** Does the harm, waits, and heals it. */
export type Fault = (chance: Chance, holds: Hold[]) => Promise<void>
export type Faults = Readonly<Record<string, Fault>>

export const wait = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
export const between = (chance: Chance, least: number, most: number) => least + chance() * (most - least)
export const one = <T>(chance: Chance, choices: readonly T[]): T => choices[Math.floor(chance() * choices.length)]!

/** Something stands still for a while; the checker is told. */
export async function held(chance: Chance, holds: Hold[], what: Hold['what'], stop: () => unknown, go: () => unknown) {
  const from = instant()
  await stop()
  await wait(between(chance, 50, 900))
  await go()
  holds.push({ from, to: instant(), what })
}

/** A server that dies, and comes back after some ms at the most. */
export const killing =
  (server: { kill(): Promise<void>; restart(): Promise<void> }, most: number): Fault =>
  async chance => {
    await server.kill()
    await wait(between(chance, 0, most))
    await server.restart()
  }

/** Faults of the connections between the processes and the engine. `write`: what requests that write contain. */
export function ofConnections(proxies: readonly FaultProxy[], write = ''): Faults {
  return {
    'connections cut': async chance => {
      const hit = chance() < 0.5 ? proxies : [one(chance, proxies)]
      for (const proxy of hit) proxy.sever()
      await wait(between(chance, 0, 300))
      await Promise.all(hit.map(proxy => proxy.heal()))
    },
    'network stalled': (chance, holds) => {
      const hit = chance() < 0.5 ? proxies : [one(chance, proxies)]
      const stall = () => hit.forEach(proxy => void proxy.stall())
      return held(chance, holds, 'network', stall, () => Promise.all(hit.map(proxy => proxy.heal())))
    },
    'answers slow': async chance => {
      for (const proxy of proxies) proxy.slow(between(chance, 2, 60))
      await wait(between(chance, 100, 500))
      for (const proxy of proxies) proxy.slow(0)
    },
    'answers lost': async chance => {
      for (let times = 0; times < 4; times++) {
        void one(chance, proxies).loseAnswerTo(write)
        await wait(between(chance, 5, 60))
      }
      await Promise.all(proxies.map(proxy => proxy.heal()))
    },
    'requests lost': async chance => {
      const proxy = one(chance, proxies)
      void proxy.loseRequest(write)
      await wait(between(chance, 20, 150))
      await proxy.heal()
    },
  }
}

/** Faults of the processes that call. */
export function ofWorkers(workers: () => readonly Worker[], replace: (worker: Worker) => Promise<void>): Faults {
  return {
    'process killed': async chance => {
      const worker = one(chance, workers())
      await worker.kill()
      await replace(worker)
    },
    'process paused': (chance, holds) => {
      const { pause, resume } = one(chance, workers())
      return held(chance, holds, 'client', pause, resume)
    },
  }
}

/** A process and all that it started, by what Linux tells; alone where the system is another. */
export function family(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
    return [pid, ...children.flatMap(family)]
  } catch {
    return [pid]
  }
}

/** Stops all processes of a server, and lets them go on. */
export function pausing(pid: () => Promise<number>): Fault {
  return async (chance, holds) => {
    const all = family(await pid())
    const signal = (name: NodeJS.Signals) => {
      for (const each of all)
        try {
          process.kill(each, name)
        } catch {}
    }
    const [stop, goOn] = (['SIGSTOP', 'SIGCONT'] as const).map(name => () => signal(name))
    await held(chance, holds, 'engine', stop!, goOn!)
  }
}
