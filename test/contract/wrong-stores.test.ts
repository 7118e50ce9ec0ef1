// What the suite is worth: each of these stores has one mistake, and the cases that are about it say so.
import type { Store } from 'coatcheck'
import type { StoreCall } from 'coatcheck/custom-store'
import {
  type Connections,
  modelTest,
  ReferenceStore,
  type TestStoreOptions,
  testStore,
} from 'coatcheck/custom-store/testing'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { asTwo } from '../support/as-two.ts'
import { CheckedStore, corrupt } from './wrong-stores/checked.ts'
import { wholeFileStore } from './wrong-stores/file.ts'
import { life } from './wrong-stores/life.ts'
import { names } from './wrong-stores/names.ts'
import { reads, SHARING, SharingStore } from './wrong-stores/reads.ts'
import { walks } from './wrong-stores/walks.ts'
import { writes } from './wrong-stores/writes.ts'

const MODEL = 'answers random sequences of calls as the reference model does'

function casesOf(
  open: () => Connections,
  options: TestStoreOptions = {},
  close?: (store: Store) => unknown,
): Map<string, () => Promise<void>> {
  const cases = new Map<string, () => Promise<void>>()
  testStore((name, test) => cases.set(name, test), open, close, options)
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

describe('a store that keeps its own process in order, and no other', () => {
  const RACES = [
    'does not let a late update or touch revive a session that is being ended',
    'does not let a late update or touch revive a session while its user is logged out everywhere',
    'does not let a late update or touch revive a session that is being replaced',
    'does not lose an acknowledged update while an anonymous session becomes a login',
    'ends the session and its successor when a logout and a rotation run at once',
    'ends the last successor when a logout and a chain of rotations run at once',
    'either ends the anonymous session or makes it a login when both are asked for at once',
    'says once that a session was ended when it is ended ten times at once',
    'gives a session one successor when it is replaced 20 times at once',
    'makes an anonymous session one login when 20 users log in from it at once',
    'makes one session of ten parallel creates with one key',
    'lets no login with the old password survive a logout everywhere at the same time',
    'lets no session begin unseen with a series that is being ended',
    'counts to 100 in 100 parallel increments',
    'lets one of two updates of one version win',
  ]
  it('passes over one connection', async () => {
    const cases = casesOf(() => wholeFileStore({ text: '[]' }), { rounds: 4 })
    expect(await failing(cases, RACES)).toEqual([])
  })
  it('is caught over two connections by each race', async () => {
    const open = (file = { text: '[]' }): Connections => [wholeFileStore(file), wholeFileStore(file)]
    const cases = casesOf(() => open(), { rounds: 4 })
    expect(await failing(cases, RACES)).toEqual(RACES)
  })
})

describe('the last line', () => {
  async function lastLineOf(open: () => Connections) {
    const line = vi.spyOn(console, 'log').mockImplementation(() => {})
    try {
      const closed: Store[] = []
      for (const [, test] of [...casesOf(open, { runs: 1 }, store => closed.push(store))].slice(-2)) await test()
      return { lines: line.mock.calls.flat(), closed: closed.length }
    } finally {
      line.mockRestore()
    }
  }
  it('says what was not asked where the suite has one connection, once', async () => {
    const { lines, closed } = await lastLineOf(() => new ReferenceStore())
    expect(lines).toEqual([expect.stringMatching(/what two processes do at once was not asked/)])
    expect(closed).toBe(2)
  })
  it('is nothing where it has two, and both are closed', async () => {
    const database = new ReferenceStore()
    const connect = () => Object.assign(new ReferenceStore(), database)
    expect(await lastLineOf(() => [connect(), connect()])).toEqual({ lines: [], closed: 4 })
  })
})

describe('a store without the verbs that only operators use', () => {
  class WithoutAWalk extends ReferenceStore {
    override readonly scan = undefined as never
    override readonly count = undefined as never
    override readonly sweep = undefined as never
  }
  testStore(it, () => asTwo(new WithoutAWalk()), undefined, { runs: 5, rounds: 2 })
})

describe('a store that sends the reads of one turn as one command', () => {
  testStore(it, () => asTwo(new SharingStore()), undefined, SHARING)
})

describe('the model-based tests', () => {
  const falling = names.find(({ mistake }) => mistake === 'lets a minimum password version fall')!

  it('find a mistake by themselves, and name a seed that finds it again', async () => {
    const report = await casesOf(() => asTwo(falling.open()), { seed: 1, runs: 200 }).get(MODEL)!().catch(
      (error: Error) => error.message,
    )
    const seed = Number(/\{ seed: (-?\d+), runs: 1 \}/.exec(report ?? '')?.[1])
    expect(seed).toBeGreaterThan(0)
    const again = await casesOf(() => asTwo(falling.open()), { seed, runs: 1 }).get(MODEL)!().catch(
      (error: Error) => error.message,
    )
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
