// What the suite is worth: each of these stores has one mistake, and the cases that are about it say so.
import type { Store } from 'coatcheck'
import type { StoreCall } from 'coatcheck/custom-store'
import { modelTest, ReferenceStore, type TestStoreOptions, testStore } from 'coatcheck/custom-store/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CheckedStore, corrupt } from './wrong-stores/checked.ts'
import { life } from './wrong-stores/life.ts'
import { names } from './wrong-stores/names.ts'
import { reads, SHARING, SharingStore } from './wrong-stores/reads.ts'
import { walks } from './wrong-stores/walks.ts'
import { writes } from './wrong-stores/writes.ts'

const MODEL = 'answers random sequences of calls as the reference model does'

function casesOf(open: () => Store, options: TestStoreOptions = {}): Map<string, () => Promise<void>> {
  const cases = new Map<string, () => Promise<void>>()
  testStore((name, test) => cases.set(name, test), open, undefined, options)
  return cases
}

/** Which of these cases fail, in one of so many runs. */
async function failing(
  cases: Map<string, () => Promise<void>>,
  wanted: readonly string[],
  runs = 1,
): Promise<string[]> {
  const failed = new Set<string>()
  for (const name of wanted) {
    const test = cases.get(name)
    expect(test, `the suite has no case '${name}'`).toBeDefined()
    for (let run = 0; run < runs && !failed.has(name); run++) await test!().catch(() => failed.add(name))
  }
  return [...failed]
}

describe('the suite catches a store that', () => {
  for (const { mistake, open, caughtBy } of [...life, ...writes, ...names])
    it(mistake, async () => {
      expect(await failing(casesOf(open), caughtBy)).toEqual(caughtBy)
    })
})

describe('the suite catches a store with shared reads that', () => {
  for (const { mistake, open, caughtBy } of reads)
    it(mistake, async () => {
      expect(await failing(casesOf(open, SHARING), caughtBy)).toEqual(caughtBy)
    })
})

describe('the suite catches a store with a walk that', () => {
  // The keys are random, so that four rounds of a random case find a mistake of order most times, not every time.
  for (const { mistake, open, caughtBy } of walks)
    it(mistake, async () => {
      expect(await failing(casesOf(open, SHARING), caughtBy, 20)).toEqual(caughtBy)
    })
})

describe('a store without the verbs that only operators use', () => {
  class WithoutAWalk extends ReferenceStore {
    override readonly scan = undefined as never
    override readonly count = undefined as never
    override readonly sweep = undefined as never
  }
  testStore(it, () => new WithoutAWalk(), undefined, { runs: 5, rounds: 2 })
})

describe('a store that sends the reads of one turn as one command', () => {
  testStore(it, () => new SharingStore(), undefined, SHARING)
})

describe('the model-based tests', () => {
  const falling = names.find(({ mistake }) => mistake === 'lets a minimum password version fall')!

  it('find a mistake by themselves, and name a seed that finds it again', async () => {
    const report = await casesOf(falling.open, { seed: 1, runs: 200 }).get(MODEL)!().catch(
      (error: Error) => error.message,
    )
    const seed = Number(/\{ seed: (-?\d+), runs: 1 \}/.exec(report ?? '')?.[1])
    expect(seed).toBeGreaterThan(0)
    const again = await casesOf(falling.open, { seed, runs: 1 }).get(MODEL)!().catch((error: Error) => error.message)
    const step = (text: unknown) => /\nat .*/.exec(String(text))?.[0]
    expect(step(again)).toBe(step(report))
  })

  it('find a mistake with fast-check, and print its seed', async () => {
    await expect(modelTest(fc, falling.open, undefined, { seed: 1, runs: 500 })).rejects.toThrow(/seed: 1\b/)
  })
})

class LeavesTheCorrupt extends CheckedStore {
  override async read(key: string, { now }: StoreCall) {
    const record = this.records.get(key)
    const found = await super.read(key, { now })
    if (found !== null && 'corrupt' in found) this.records.set(key, record!)
    return found
  }
}

class ShowsTheContent extends CheckedStore {
  override async read(key: string, { now }: StoreCall) {
    const record = this.records.get(key)
    const found = await super.read(key, { now })
    return found !== null && 'corrupt' in found ? ({ corrupt: JSON.stringify(record) } as never) : found
  }
}

describe('corrupted records', () => {
  const REPORTED = 'reports a corrupted record once, without its content, and removes it'
  const ALL = [
    REPORTED,
    'leaves corrupted records out of the list',
    'ends a session and a user although records are corrupted',
  ]
  const tested = (open: () => Store, wanted: readonly string[]) => failing(casesOf(open, { corrupt }), wanted)

  it('pass where the store checks what it reads', async () => {
    expect(await tested(() => new CheckedStore(), ALL)).toEqual([])
  })
  it('are caught where the store takes them for sessions', async () => {
    expect(await tested(() => new ReferenceStore(), ALL)).toEqual(ALL.slice(0, 2))
  })
  it('are caught where the store leaves them in place', async () => {
    expect(await tested(() => new LeavesTheCorrupt(), [REPORTED])).toEqual([REPORTED])
  })
  it('are caught where the store reports their content', async () => {
    expect(await tested(() => new ShowsTheContent(), [REPORTED])).toEqual([REPORTED])
  })
  it('are not asked for without a function that damages a row', () => {
    expect(casesOf(() => new ReferenceStore()).has(REPORTED)).toBe(false)
  })
})
