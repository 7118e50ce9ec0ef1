// One of several processes that call one engine at the same time. Each line of the log is written before and after its
// call, so that it tells what a process that was killed had begun.
import { openSync, writeSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { perform, play, type Round } from './client.ts'
import type { Call } from './model.ts'
import { type Opening, openStore } from './open-store.ts'

/** What a worker is told to do, and where to log it. */
export type Order = { readonly log: string } & (
  | { readonly round: Round }
  /** Calls that are made until the engine answers them. */
  | { readonly calls: readonly { readonly cell: number; readonly call: Call }[] }
)

const [name, opening] = JSON.parse(process.argv[2]!) as [string, Opening]
const PATIENCE = 60_000
const AT_ONCE = 8

process.on('disconnect', () => process.exit())
const store = await openStore(opening)
process.on('message', async (order: Order) => {
  const file = openSync(order.log, 'a')
  const log = (part: object) => void writeSync(file, `${JSON.stringify(part)}\n`)
  if ('round' in order) await play(store, name, order.round, log)
  else {
    const left = order.calls.map((each, number) => ({ ...each, number }))
    const end = performance.now() + PATIENCE
    const one = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        for (let attempt = 0; performance.now() < end; attempt++) {
          const about = { id: `${name} last ${next.number} ${attempt}`, client: `${name} last`, cell: next.cell }
          const { failed } = await perform(store, next.call, log, about, 2000)
          if (failed === undefined) break
          await new Promise(resolve => setTimeout(resolve, 50))
        }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, one))
  }
  process.send?.({ done: true })
})
process.send?.({ ready: true })
