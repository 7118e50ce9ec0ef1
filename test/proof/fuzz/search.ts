import { randomNumbers } from '../../../src/custom-store/random.ts'
import { drawn, shrunk } from './mutate.ts'
import { checkNoPollution, type Target, wordsOf } from './target.ts'

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
  const [grown, words] = [[...corpus], wordsOf(target)]
  const kinds = new Set<string>()
  const { user, system } = process.cpuUsage()
  for (let count = 0; count < inputs; count += 1) {
    const input = drawn(next, grown, words)
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
