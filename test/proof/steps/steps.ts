// Every order of the commands that some calls of a store send to its server: a call waits at each of its commands until it is
// chosen, an answer may be lost, a command may not arrive. What the calls answered, and what is left, is judged by the
// checker of the histories.
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { SessionStoreError, type Store } from 'coatcheck'
import { check } from '../engines/checker.ts'
import { make, plain } from '../engines/client.ts'
import type { Entry } from '../engines/history.ts'
import type { Call, Rules } from '../engines/model.ts'
import { told } from '../engines/proof.ts'

export interface Scene {
  readonly name: string
  /** Made one after the other, before all else. */
  readonly before: readonly Call[]
  /** Made at the same time. */
  readonly calls: readonly Call[]
  /** How many answers may be lost, or commands not arrive. @default 0 */
  readonly faults?: number
}

/** A server that stands still between two commands. */
export interface Server {
  readonly gate: Gate
  readonly store: Store
  readonly rules: Rules
  clear(): Promise<unknown>
  /** How many commands wait for the lock of another call. */
  blocked(): Promise<number>
  stop(): Promise<unknown>
}

interface Waiting {
  readonly actor: number
  readonly label: string
  send(): Promise<unknown>
  resolve(answer: unknown): void
  reject(error: Error): void
}

/** Where the commands of the calls wait. */
export class Gate {
  readonly #whose = new AsyncLocalStorage<number>()
  readonly waiting: Waiting[] = []
  /** Sent, and not answered yet. */
  sent = 0

  /** What a command answers, once it is chosen; at once outside of a call. */
  pass(label: string, send: () => Promise<unknown>): Promise<unknown> {
    const actor = this.#whose.getStore()
    if (actor === undefined) return send()
    return new Promise((resolve, reject) => this.waiting.push({ actor, label, send, resolve, reject }))
  }

  begin(actor: number, work: () => Promise<unknown>): void {
    void this.#whose.run(actor, work)
  }

  choose(chosen: Waiting, end: 'runs' | 'loses its answer' | 'does not arrive'): void {
    const { send, resolve, reject } = chosen
    this.waiting.splice(this.waiting.indexOf(chosen), 1)
    if (end === 'does not arrive') return reject(new Error('ECONNREFUSED'))
    this.sent += 1
    const over = () => {
      this.sent -= 1
    }
    send()
      .finally(over)
      .then(answer => (end === 'runs' ? resolve(answer) : reject(new Error('ECONNRESET'))), reject)
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

/** Walks through all orders of a scene, and answers how many. @throws AssertionError with the first that no order of the calls explains */
export async function walk(server: Server, scene: Scene): Promise<number> {
  let path: number[] = []
  for (let orders = 1; ; orders += 1) {
    const widths: number[] = []
    const { entries, trace } = await runOnce(server, scene, options => path[widths.push(options) - 1] ?? 0)
    const verdict = check(entries, { rules: server.rules, grace: 0 })
    if (!verdict.ok) assert.fail(`${scene.name}, in order ${orders}:\n${trace.join('\n')}\n${told(verdict)}`)
    path = widths.map((_, at) => path[at] ?? 0)
    while (path.length > 0 && path.at(-1)! + 1 >= widths[path.length - 1]!) path.pop()
    if (path.length === 0) return orders
    path.push(path.pop()! + 1)
  }
}

async function runOnce(server: Server, { before, calls, faults = 0 }: Scene, choose: (options: number) => number) {
  const { gate, store, clear, blocked } = server
  const entries: Entry[] = []
  const trace: string[] = []
  let now = 0
  const ask = async (call: Call) => {
    const about = { id: `${entries.length}`, client: `c${entries.length}`, cell: 0, call, invoked: (now += 1) }
    const at = entries.push({ ...about, deadline: Number.POSITIVE_INFINITY }) - 1
    const heard = await Promise.resolve(make(store, call, performance.now() + 60_000)).then(
      answer => ({ answer: plain(answer) }),
      error => ({ failed: error instanceof SessionStoreError ? error.outcome : ('unknown' as const), reason: `${error}` }),
    )
    now += 1
    entries[at] = { ...about, ...heard, deadline: now, answered: now }
  }
  await clear()
  for (const call of before) await ask(call)
  const states = calls.map((): 'new' | 'begun' | 'done' => 'new')
  /** Until each call that has begun is over, waits at the gate, or waits for a lock. */
  const settled = async () => {
    for (;;) {
      await turn()
      const here = new Set(gate.waiting.map(({ actor }) => actor))
      const running = states.filter((state, actor) => state === 'begun' && !here.has(actor)).length
      if (running === 0 || (running === gate.sent && (await blocked()) === running)) return
    }
  }
  for (let left = faults; ; ) {
    await settled()
    const options: { readonly label: string; run(): void }[] = []
    for (const [actor, state] of states.entries())
      if (state === 'new')
        options.push({
          label: `${actor}: ${calls[actor]!.verb}`,
          run() {
            states[actor] = 'begun'
            gate.begin(actor, () => ask(calls[actor]!).finally(() => (states[actor] = 'done')))
          },
        })
    for (const each of gate.waiting.toSorted((one, other) => one.actor - other.actor))
      for (const end of ['runs', ...(left > 0 ? (['loses its answer', 'does not arrive'] as const) : [])] as const)
        options.push({
          label: `${each.actor}: ${each.label} ${end}`,
          run() {
            if (end !== 'runs') left -= 1
            gate.choose(each, end)
          },
        })
    if (options.length === 0) break
    const { label, run } = options[choose(options.length)]!
    trace.push(label)
    run()
  }
  assert.ok(
    states.every(state => state === 'done'),
    `nothing goes on any more: ${trace.join(', ')}`,
  )
  // What failed is repeated, as its caller is told to. Then all is asked.
  for (const { call, failed } of [...entries]) if (failed !== undefined) await ask(call)
  const at = before[0]!.now
  const made = [...before, ...calls].flatMap(call => (call.verb === 'create' || call.verb === 'replace' ? call.record : []))
  for (const { key } of made) await ask({ verb: 'read', key, now: at })
  for (const userId of new Set(made.flatMap(record => record.userId ?? [])))
    for (const kind of ['session', 'remember'] as const) await ask({ verb: 'listUser', userId, kind, now: at })
  return { entries, trace }
}
