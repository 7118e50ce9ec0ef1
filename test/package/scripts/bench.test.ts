// What the benchmarks measure goes on to work: each server on memory, started once, answers as the others do.
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const bench = (file: string) => import(new URL(`../../../bench/${file}`, import.meta.url).href)
const { TABLES } = await bench('stores.mjs')
const { check } = await bench('contest.mjs')
const { Running } = await bench('rounds.mjs')
const { Load } = await bench('load.mjs')
const isBuilt = existsSync(new URL('../../../dist/index.js', import.meta.url))

interface Row {
  readonly label: string
  readonly file: string
}

describe('a server of the benchmarks', () => {
  it.for(TABLES.memory.rows as Row[])('$label logs in, writes, and logs out', async (row, { skip }) => {
    skip(row.label.includes('coatcheck') && !isBuilt, 'dist is not built')
    const server = new Running({ name: row.label, file: row.file })
    try {
      const port = await server.ask().catch((error: Error) => {
        skip(/^Cannot find package/.test(error.message), error.message)
        throw error
      })
      const load = new Load(port, 2)
      await expect(check(row, load)).resolves.toBeUndefined()
      load.close()
    } finally {
      server.stop()
    }
  })
})
