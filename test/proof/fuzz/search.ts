import { randomNumbers } from '../../../testing/random.ts'
import { drawn, shrunk } from './mutate.ts'
import { checkNoPollution, type Target } from './target.ts'

export interface Figures {
  readonly inputs: number
  readonly kinds: number
  /** CPU time of the search, s. */
  readonly seconds: number
}

/** Kinds of outcomes are few; a target that answers with the input would fill memory. */
const MOST_KINDS = 10_000

async function failureOf(target: Target, input: string): Promise<unknown> {
  try {
    await target.check(input)
    checkNoPollution()
    return null
  } catch (error) {
    return error ?? new Error('it threw nothing')
  }
}

/** Draws inputs, compares each answer, and lets an input with a new kind of outcome join the corpus. */
export async function search(
  target: Target,
  corpus: readonly string[],
  inputs: number,
  seed: number,
): Promise<Figures> {
  const random = randomNumbers(seed)
  // Seeds were printed when a draw had 16 bits.
  const next = () => random() & 0xffff
  const grown = [...corpus]
  const kinds = new Set<string>()
  const { user, system } = process.cpuUsage()
  for (let count = 0; count < inputs; count += 1) {
    const input = drawn(next, grown, target.tokens)
    try {
      const answer = target.check(input)
      const kind = typeof answer === 'string' ? answer : await answer
      if (!kinds.has(kind) && kinds.size < MOST_KINDS) {
        kinds.add(kind)
        grown.push(input)
      }
      checkNoPollution()
    } catch {
      const least = await shrunk(input, async text => (await failureOf(target, text)) !== null)
      throw new Error(
        `${target.name}, seed ${seed}, input ${count}: ${JSON.stringify(least)} (give it a name in seeds.json)`,
        { cause: await failureOf(target, least) },
      )
    }
  }
  const used = process.cpuUsage({ user, system })
  return { inputs, kinds: kinds.size, seconds: (used.user + used.system) / 1e6 }
}

const SMALL = 8192
const FACTOR = 8
/** What no linear reader takes, with room for noise: a quadratic one takes 64. */
export const LINEAR = 32
const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length >> 1]!

/**
 * How many times longer an input takes that is 8 times as long, in CPU time: about 8 where time is linear, 64 where it is
 * quadratic. Where it seems too long it is measured again: other programs only add to it.
 */
export function growthOf(run: (input: string) => unknown, make: (length: number) => string): number {
  const [small, large] = [make(SMALL), make(SMALL * FACTOR)]
  const cpu = (input: string, times: number) => {
    const before = process.cpuUsage()
    for (let i = 0; i < times; i += 1) run(input)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  // As often as takes a millisecond: less is noise.
  let times = 1
  while (cpu(small, times) < 1000 && times < 1 << 14) times *= 2
  const samples = (input: string) => median([0, 1, 2].map(() => cpu(input, times)))
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < 4 && least >= LINEAR; tries += 1)
    least = Math.min(least, samples(large) / Math.max(samples(small), 500))
  return least
}
