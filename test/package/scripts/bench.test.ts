// What the benchmarks measure goes on to work: each server on memory, started once, answers as the others do.
import { existsSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'

const bench = (file: string) => import(new URL(`../../../bench/${file}`, import.meta.url).href)
const { TABLES } = await bench('stores.mjs')
const { check } = await bench('contest.mjs')
const { Running } = await bench('rounds.mjs')
const { Load } = await bench('load.mjs')
const { growthOf } = await bench('growth.mjs')
const { measure } = await bench('measure/run.mjs')
const isBuilt = existsSync(new URL('../../../dist/index.js', import.meta.url))

interface Row {
  readonly label: string
  readonly file: string
}

describe('a server of the benchmarks', () => {
  it.for(TABLES.memory.rows as Row[])('$label logs in, writes, and logs out', async (row, { skip }) => {
    skip(row.label.includes('coatcheck') && !isBuilt, 'dist is not built')
    const server = new Running({ name: row.label, file: row.file })
    onTestFinished(() => server.stop())
    const port = await server.ask().catch((error: Error) => {
      skip(/^Cannot find package/.test(error.message), error.message)
      throw error
    })
    const load = new Load(port, 2)
    await expect(check(row, load)).resolves.toBeUndefined()
    load.close()
  })
})

describe('growth', () => {
  it.each([
    ['flat', [10, 100, 1000], [5, 4.9, 6.1]],
    ['linear', [10, 100, 1000], [5, 30, 290]],
    ['linear', [2, 8, 32], [20, 90, 380]],
    ['**more**', [10, 100, 1000], [1, 90, 8800]],
  ])('is %s where %j cost %j', (word, sizes, costs) => {
    expect(growthOf(sizes, costs)).toBe(word)
  })

  it('is measured for each verb, in memory too', { skip: !isBuilt }, async () => {
    const rows = (await measure('growth.mjs', 'memory', 'quick')) as {
      title: string
      sizes: number[]
      costs: number[]
    }[]
    expect(rows.map(({ title }) => title)).toEqual(
      expect.arrayContaining(['list', 'invalidateUser', 'login under a limit', 'sweep', 'logout by the first ID']),
    )
    for (const { sizes, costs } of rows) expect(costs.filter(cost => cost > 0)).toHaveLength(sizes.length)
  })
})
