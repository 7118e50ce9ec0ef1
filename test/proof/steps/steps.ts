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
  /** Made at the same time, those of a list one after the other. */
  readonly calls: readonly (Call | readonly Call[])[]
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

  /** Lets the command of a call go on, if it has one. */
  choose(actor: number, end: (typeof ENDS)[number]): void {
    const at = this.waiting.findIndex(waiting => waiting.actor === actor)
    if (at < 0) return
    const [{ send, resolve, reject }] = this.waiting.splice(at, 1) as [Waiting]
    const lost = Object.assign(new Error('ECONNRESET'), { code: 'ECONNRESET' })
    if (end === 'does not arrive') {
      reject(lost)
      return
    }
    this.sent += 1
    const over = () => {
      this.sent -= 1
    }
    send()
      .finally(over)
      .then(answer => (end === 'runs' ? resolve(answer) : reject(lost)), reject)
  }
}

const ENDS = ['runs', 'loses its answer', 'does not arrive'] as const

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

async function runOnce(server: Server, { before, faults = 0, ...scene }: Scene, choose: (options: number) => number) {
  const { gate, store, clear, blocked } = server
  const calls = scene.calls.map(each => [each].flat())
  const entries: Entry[] = []
  const trace: string[] = []
  let now = 0
  const ask = async (call: Call) => {
    now += 1
    const about = { id: `${entries.length}`, client: `c${entries.length}`, cell: 0, call, invoked: now }
    const at = entries.push({ ...about, deadline: Number.POSITIVE_INFINITY }) - 1
    const heard = await Promise.resolve(make(store, call, performance.now() + 60_000)).then(
      answer => ({ answer: plain(answer) }),
      error => ({
        failed: error instanceof SessionStoreError ? error.outcome : ('unknown' as const),
        reason: `${error}`,
      }),
    )
    now += 1
    entries[at] = { ...about, ...heard, deadline: now, answered: now }
  }
  await clear()
  for (const call of before) await ask(call)
  const states = calls.map((): 'new' | 'begun' | 'done' => 'new')
  const isOver = () => states.every(state => state === 'done')
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
    const ends = left > 0 ? ENDS : ENDS.slice(0, 1)
    const choices = [
      ...states.flatMap((state, actor) => (state === 'new' ? ends.map(end => ({ actor, label: 'begins', end })) : [])),
      ...gate.waiting
        .toSorted((one, other) => one.actor - other.actor)
        .flatMap(waiting => ends.map(end => ({ actor: waiting.actor, label: waiting.label, end }))),
    ]
    if (choices.length === 0 && isOver()) break
    assert.ok(choices.length > 0, `nothing goes on any more: ${trace.join(', ')}`)
    const { actor, label, end } = choices[choose(choices.length)]!
    trace.push(`${actor}: ${calls[actor]!.map(({ verb }) => verb)} ${label} ${end}`)
    if (end !== 'runs') left -= 1
    if (states[actor] === 'new') {
      // With its first command: what is begun and has sent nothing does not matter to the others.
      states[actor] = 'begun'
      gate.begin(actor, async () => {
        for (const call of calls[actor]!) await ask(call)
        states[actor] = 'done'
      })
      await settled()
    }
    gate.choose(actor, end)
  }
  // What failed is repeated, as its caller is told to. Then all is asked.
  for (const { call, failed } of [...entries]) if (failed !== undefined) await ask(call)
  const at = before[0]!.now
  const made = [...before, ...calls.flat()].flatMap(call =>
    call.verb === 'create' || call.verb === 'replace' ? call.record : [],
  )
  for (const { key } of made) await ask({ verb: 'read', key, now: at })
  for (const userId of new Set(made.flatMap(record => record.userId ?? [])))
    for (const kind of ['session', 'remember'] as const) await ask({ verb: 'listUser', userId, kind, now: at })
  return { entries, trace }
}
