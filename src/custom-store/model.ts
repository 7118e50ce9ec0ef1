import type { Store } from '../contract/store.ts'
import { type Connections, inTurn, storesOf } from './connections.ts'
import { randomNumbers } from './random.ts'
import { STEP_RANGE, type Step, stepName, World } from './world.ts'

const LENGTH = 60

/** Compares random sequences of calls with the reference model; a failure names the seed that repeats it. */
export async function compareWithModel(store: Store, seed: number, runs: number): Promise<void> {
  for (let run = 0; run < runs; run++) {
    const next = randomNumbers(seed + run)
    const world = new World(store)
    const done: string[] = []
    try {
      for (let length = 0; length < LENGTH; length++) {
        const number = () => next() % STEP_RANGE
        const step: Step = [number(), number(), number(), number()]
        done.push(stepName(step))
        await world.run(step)
      }
      done.push('compareAll()')
      await world.compareAll()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const message = `the store differs from the model; { seed: ${seed + run}, runs: 1 } repeats it`
      throw new Error(
        `${message}\nat ${done.length}: ${done.at(-1)}\nafter ${done.slice(0, -1).join(', ')}\n${reason}`,
        {
          cause: error,
        },
      )
    }
  }
}

/** The few parts of fast-check (3.0 or later) that `modelTest` uses; the module itself fits. */
export interface FastCheck {
  // biome-ignore-start lint/suspicious/noExplicitAny: the part of fast-check that is used, whichever release of it is passed in
  nat(max: number): any
  tuple(...arbitraries: any[]): any
  commands(arbitraries: any[], options: { maxCommands: number; size: 'max' }): any
  asyncModelRun(setup: any, commands: any): Promise<void>
  asyncProperty(commands: any, predicate: (commands: any) => Promise<void>): any
  assert(property: any, parameters: { numRuns: number; seed?: number }): Promise<void> | void
  // biome-ignore-end lint/suspicious/noExplicitAny: the part of fast-check that is used, whichever release of it is passed in
}

/**
 * The same comparison under fast-check, which shrinks a failing sequence to its shortest form and prints its seed:
 * `it('behaves like the model', () => modelTest(fc, () => new MyStore()))`.
 *
 * @param fc - the fast-check module
 * @param open - opens a store over two connections to one database, or over one, once
 * @param close - closes each of the stores at the end
 */
export async function modelTest(
  fc: FastCheck,
  open: () => Connections | Promise<Connections>,
  close?: (store: Store) => unknown,
  options: { runs?: number; seed?: number } = {},
): Promise<void> {
  const { runs = 100, seed } = options
  const stores = storesOf(await open())
  const number = fc.nat(STEP_RANGE - 1)
  const commands = fc.tuple(number, number, number, number).map((step: Step) => ({
    check: () => true,
    run: (_: unknown, world: World) => world.run(step),
    toString: () => stepName(step),
  }))
  try {
    const property = fc.asyncProperty(
      fc.commands([commands], { maxCommands: LENGTH, size: 'max' }),
      async (sequence: unknown) => {
        const world = new World(inTurn(stores))
        await fc.asyncModelRun(() => ({ model: {}, real: world }), sequence)
        await world.compareAll()
      },
    )
    await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }) })
  } finally {
    for (const store of new Set(stores)) await close?.(store)
  }
}
