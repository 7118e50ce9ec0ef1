import type { Store } from 'coatcheck'

export type Verb = Exclude<keyof Store, 'shard' | 'close' | 'isPerRequest'>
/** Takes the place of one call: `proceed` is what the store behind would have done. */
export type Handler = (proceed: () => Promise<any>, args: readonly any[]) => unknown

export interface Pause {
  /** Resolves when the call has arrived at the barrier. */
  readonly reached: Promise<void>
  /** Lets it go on. */
  resume(): void
}

export const VERBS: readonly Verb[] = [
  'create',
  'read',
  'update',
  'touch',
  'replace',
  'delete',
  'deleteUser',
  'listUser',
]
const never = new Promise<never>(() => {})

/** Faults to hand to `next` and `every`. */
export const faults = {
  /** The command runs, its answer never comes. */
  lostReply: (proceed => proceed().then(() => never)) as Handler,
  /** Neither runs nor answers. */
  hang: (() => never) as Handler,
  rejects: (() => Promise.reject(new Error('ECONNRESET'))) as Handler,
  /** The command runs, then the connection breaks. */
  rejectsAfter: (proceed => proceed().then(() => Promise.reject(new Error('ECONNRESET')))) as Handler,
  throws: (() => {
    throw new Error('client is closed')
  }) as Handler,
  answers: (answer: unknown): Handler => {
    return () => answer
  },
}

/** A store in front of another: counts calls, stops them at barriers, and lets them fail in every way. */
export class BarrierStore {
  readonly inner: Store
  readonly calls: { verb: Verb; args: readonly any[] }[] = []
  readonly #next: { verb: Verb | 'any'; handler: Handler }[] = []
  readonly #every = new Map<Verb, Handler>()

  constructor(inner: Store) {
    this.inner = inner
    for (const verb of [...VERBS, 'sweep', 'scan', 'count'] as const) {
      if (typeof inner[verb] !== 'function') continue
      ;(this as any)[verb] = (...args: unknown[]) => this.#run(verb, args)
    }
    if (inner.shard) (this as any).shard = inner.shard.bind(inner)
    if (inner.close) (this as any).close = inner.close.bind(inner)
  }

  static over(inner: Store): BarrierStore & Store {
    return new BarrierStore(inner) as BarrierStore & Store
  }

  /** The next call of this verb (`'any'`: of whatever verb) goes through this handler; several queue up. */
  next(verb: Verb | 'any', handler: Handler): void {
    this.#next.push({ verb, handler })
  }

  /** All calls of this verb go through this handler; `null` takes it away. */
  every(verb: Verb, handler: Handler | null): void {
    if (handler) this.#every.set(verb, handler)
    else this.#every.delete(verb)
  }

  /** Stops the next call of this verb before the store behind sees it, or before its answer comes back. */
  pause(verb: Verb | 'any', when: 'before' | 'after'): Pause {
    let resume!: () => void
    let arrived!: () => void
    const gate = new Promise<void>(resolve => {
      resume = resolve
    })
    const reached = new Promise<void>(resolve => {
      arrived = resolve
    })
    this.next(verb, async proceed => {
      if (when === 'after') {
        const answer = await proceed()
        arrived()
        await gate
        return answer
      }
      arrived()
      await gate
      return proceed()
    })
    return { reached, resume }
  }

  /** How often each verb was called since the last `reset`; a verb that was not called is not in it. */
  counts(): Partial<Record<Verb, number>> {
    const counts: Partial<Record<Verb, number>> = {}
    for (const { verb } of this.calls) counts[verb] = (counts[verb] ?? 0) + 1
    return counts
  }

  reset(): void {
    this.calls.length = 0
  }

  #run(verb: Verb, args: unknown[]): unknown {
    this.calls.push({ verb, args })
    const run = () => (this.inner[verb] as (...args: unknown[]) => unknown)(...args)
    const at = this.#next.findIndex(rule => rule.verb === 'any' || rule.verb === verb)
    const handler = at >= 0 ? this.#next.splice(at, 1)[0]!.handler : this.#every.get(verb)
    return handler === undefined ? run() : handler(async () => run(), args)
  }
}
